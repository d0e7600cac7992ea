// Put before the chart. What a click on one tells Python, by the name that `clicks.py` gave it; null says nothing.

const CLICKED = {
  // The tile of a mosaic. The player may be further than the last step that it reported: the step travels with the click.
  tile(chart, event) {
    const grid = chart.layout.meta, [area] = areas(chart);
    if (!grid || !area) return null;
    const head = Math.floor((area.x(event) + 0.5) / grid.pitch_x);
    // Not every run has all layers, and heads may stand in another order.
    const row = Math.max(0, Math.floor((area.y(event) + 0.5) / grid.pitch_y));
    const tile = head >= 0 && head < grid.heads && grid.tiles[row * grid.heads + head];
    if (!tile) return null;
    const step = document.querySelector(".st-key-focus .chart")?.__step;
    return { kind: grid.kind, layer: tile[0], head: tile[1], step };
  },

  // The query and key under the pointer; a label alone names a row (key null) or a column (query null).
  cell(chart, event) {
    for (const { box, x, y } of areas(chart)) {
      const right = event.clientX - box.left, down = event.clientY - box.top;
      const inColumns = right >= 0 && right < box.width, inRows = down >= 0 && down < box.height;
      const key = Math.round(x(event)), query = Math.round(y(event));
      if (inColumns && inRows) return { query, key };
      const margin = 90;
      if (inRows && right < 0 && right > -margin) return { query, key: null };
      if (inColumns && down >= box.height && down < box.height + margin) return { query: null, key };
    }
    return null;
  },

  // The point of a scatter on a canvas: its customdata, a whole number.
  point(chart, event) {
    const found = chart.__picture.nearest(event), number = found && oneOf(found.trace.customdata, found.place);
    return Number.isInteger(number) ? number : null;
  },
};

// Where the subplots of a chart are on the screen, and where on their axes an event was. Plotly's events tell of neither labels
// nor cells without a number. The layout has the ranges, but nothing public has the pixels: the areas that Plotly listens on do.
function areas(chart) {
  if (chart.__picture) return chart.__picture.areas();
  return [...chart.querySelectorAll(".nsewdrag[data-subplot]")].flatMap((area) => {
    const box = area.getBoundingClientRect(), [x, y] = area.dataset.subplot.slice(1).split("y");
    const [left, right] = chart.layout[`xaxis${x}`].range, [bottom, top] = chart.layout[`yaxis${y}`].range;
    return box.width ? [{
      box,
      name: area.dataset.subplot,
      right: (x) => box.left + box.width * (x - left) / (right - left),
      down: (y) => box.bottom - box.height * (y - bottom) / (top - bottom),
      x: (event) => left + (right - left) * (event.clientX - box.left) / box.width,
      y: (event) => top + (bottom - top) * (event.clientY - box.top) / box.height,
    }] : [];
  });
}
