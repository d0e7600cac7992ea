// @ts-check
// Where things are on a chart: places in a map, cells, tiles, and what of them an event was on.
//
// A place is {kind, query, key}: a cell of one kind of attention, or a whole row (key null) or column (query null).

// Where the subplots of a chart are on the screen, and where on their axes an event was. Plotly's events tell of neither
// labels nor cells without a number. The layout has the ranges, but nothing public has the pixels: the areas that Plotly
// listens on do.
export function areas(chart) {
  return [...chart.querySelectorAll(".nsewdrag[data-subplot]")].flatMap((area) => {
    const box = area.getBoundingClientRect(), [x, y] = area.dataset.subplot.slice(1).split("y");
    const [left, right] = chart.layout[`xaxis${x}`].range, [bottom, top] = chart.layout[`yaxis${y}`].range;
    return box.width ? [{
      box,
      name: area.dataset.subplot,
      right: (x) => box.left + box.width * (x - left) / (right - left),
      down: (y) => box.bottom - box.height * (y - bottom) / (top - bottom),
      x: (event) => left + (right - left) * (event.clientX - box.left) / box.width,
      y: (event) => bottom + (top - bottom) * (box.bottom - event.clientY) / box.height,
    }] : [];
  });
}

// The subplots of a chart by their names, in its own pixels.
export function placesOn(chart) {
  const origin = chart.getBoundingClientRect();
  return Object.fromEntries(areas(chart).map(({ name, box, right, down }) => [name, {
    left: box.left - origin.left, top: box.top - origin.top, width: box.width, height: box.height,
    right: (x) => right(x) - origin.left, down: (y) => down(y) - origin.top,
  }]));
}

// The tiles of a grid, in cells, and whose they are.
export function tilesOf({ tiles, heads, pitch_x, pitch_y, rows, columns, block }) {
  return tiles.map(([layer, head], place) => {
    return { layer, head, x: (place % heads) * pitch_x, y: Math.floor(place / heads) * pitch_y, rows, columns, block };
  });
}

// The tile of a grid that an event was on, as [layer, head].
export function tileAt(chart, event) {
  const grid = chart.layout.meta, [area] = areas(chart);
  if (!grid || !area) return null;
  const head = Math.floor((area.x(event) + 0.5) / grid.pitch_x);
  // Not every run has all layers, and heads may stand in another order.
  const row = Math.max(0, Math.floor((area.y(event) + 0.5) / grid.pitch_y));
  return (head >= 0 && head < grid.heads && grid.tiles[row * grid.heads + head]) || null;
}

// Hears of each tile that is pressed, as [layer, head]: of what was under the hand as it went down, since another text that comes
// before it is up again has other tiles there.
export function hearTiles(host, hear) {
  let under = [];
  host.addEventListener("pointerdown", (event) => { under = [tileAt(host, event)]; });
  host.addEventListener("click", (event) => {
    const [tile = tileAt(host, event)] = under;
    under = [];
    if (tile) hear(tile);
  });
}

// The query and key that an event was on; a label alone names a row (key null) or a column (query null).
export function cellAt(area, event, [left, below] = [90, 90]) {
  const { box } = area, right = event.clientX - box.left, down = event.clientY - box.top;
  const inColumns = right >= 0 && right < box.width, inRows = down >= 0 && down < box.height;
  const key = Math.round(area.x(event)), query = Math.round(area.y(event));
  if (inColumns && inRows) return { query, key };
  if (inRows && right < 0 && right > -left) return { query, key: null };
  return inColumns && down >= box.height && down < box.height + below ? { query: null, key } : null;
}

// Of the labels beside a map and below it.
export const MARGIN_PX = 90;

export function isSame(a, b) {
  return a === b || Boolean(a && b && ["kind", "query", "key", "candidate"].every((name) => a[name] === b[name]));
}

// The same place in another kind of attention: a step is a row of both that write, a source token a column of both that read
// it.
export function inKind({ kind, query, key }, other) {
  if (kind === other) return { query, key };
  if (other !== "encoder" && kind !== "encoder") return query === null ? null : { query, key: null };
  const isOfSource = kind !== "decoder" && other !== "decoder";
  return isOfSource && key !== null ? { query: null, key } : null;
}

// The large chart's map, its candidates, and the map of a measure beside it; of another chart the map alone.
export function areasOf(chart) {
  const named = Object.fromEntries(areas(chart).map((area) => [area.name, area]));
  return { map: named.xy, candidates: named.x2y2, second: named.x3y3 };
}

export function placeOnMap(area, kind, event) {
  const cell = cellAt(area, event, [MARGIN_PX, MARGIN_PX / 3]);
  return cell && { kind, ...cell };
}

export function placeOnTile(chart, kind, area, event) {
  const x = Math.round(area.x(event)), y = Math.round(area.y(event));
  const tile = tilesOn(chart).find((tile) => x >= tile.x && x < tile.x + tile.columns && y >= tile.y && y < tile.y + tile.rows);
  if (!tile) return null;
  return { kind, query: (y - tile.y) * tile.block[0], key: (x - tile.x) * tile.block[1] };
}

// The maps on a chart, in cells: all tiles of a mosaic, or the one large map.
export function tilesOn({ layout: { meta } }) {
  return meta?.tiles ? tilesOf(meta) : [{ x: 0, y: 0, rows: Infinity, columns: Infinity, block: [1, 1] }];
}
