// Put before the chart. What a click on one tells Python, by the name that `clicks.py` gave it; null says nothing.

const CLICKED = {
  // The tile of a mosaic. The player may be further than the last step that it reported: the step travels with the click.
  tile(chart, event) {
    const grid = chart.layout.meta, area = chart.querySelector(".nsewdrag")?.getBoundingClientRect();
    if (!grid || !area) return null;
    const { xaxis, yaxis } = chart._fullLayout._plots.xy;
    const head = Math.floor((xaxis.p2d(event.clientX - area.left) + 0.5) / grid.pitch_x);
    // Not every run has all layers, so a row of tiles is not the layer's number.
    const row = Math.max(0, Math.floor((yaxis.p2d(event.clientY - area.top) + 0.5) / grid.pitch_y));
    if (head < 0 || head >= grid.heads || row >= grid.layers) return null;
    const step = document.querySelector(".st-key-focus .js-plotly-plot")?.__step;
    return { kind: grid.kind, layer: grid.numbers[row], head, step };
  },

  // The query and key under the pointer; a label alone names a row (key null) or a column (query null).
  cell(chart, event) {
    for (const area of chart.querySelectorAll(".nsewdrag[data-subplot]")) {
      const plot = chart._fullLayout._plots[area.dataset.subplot];
      const box = area.getBoundingClientRect();
      if (!plot || !box.width) continue;
      const right = event.clientX - box.left, down = event.clientY - box.top;
      const inColumns = right >= 0 && right < box.width, inRows = down >= 0 && down < box.height;
      const key = Math.round(plot.xaxis.p2d(right)), query = Math.round(plot.yaxis.p2d(down));
      if (inColumns && inRows) return { query, key };
      const margin = 90;
      if (inRows && right < 0 && right > -margin) return { query, key: null };
      if (inColumns && down >= box.height && down < box.height + margin) return { query: null, key };
    }
    return null;
  },
};

// The point of a scatter: its customdata, a whole number. Plotly says which it was, in an event of its own.
function pointOf(event) {
  const number = event.points?.[0]?.customdata;
  return Number.isInteger(number) ? number : null;
}
