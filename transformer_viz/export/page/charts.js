// Charts, in the app and on the exported page: Plotly draws each into its place, where it stays.

// Never "Share chart" nor the sign of Plotly's makers: what is drawn here leaves for nobody.
const BARE = { responsive: true, displaylogo: false, showSendToCloud: false, doubleClick: "reset", showTips: false };
const ZOOMS = ["zoom2d", "pan2d", "resetScale2d"];
const AXIS = /^[xy]axis\d*$/;

// A finger scrolls the page.
const isTouch = () => window.matchMedia("(pointer: coarse)").matches;

// Always the same one: Plotly makes a chart anew whose configuration is another.
let button;
const pictureButton = () => (button ??= {
  name: "toImage", title: "Download plot as a PNG", icon: window.Plotly.Icons.camera, click: savePicture,
});

// A chart as a PNG that says above it what it is of.
function savePicture(chart) {
  const words = chart.dataset.title || document.title, own = chart.layout.title?.text, room = 32;
  const layout = structuredClone(chart.layout), height = chart.offsetHeight + room;
  const text = words.replace(/[&<>$]/g, (sign) => `&#${sign.charCodeAt(0)};`) + (own ? ` · ${own}` : "");
  const place = { x: 0, xanchor: "left", xref: "container", y: 1, yanchor: "top", yref: "container", pad: { t: 8, l: 8 } };
  layout.title = { text, ...place, font: { size: 15 } };
  layout.margin = { ...layout.margin, t: (layout.margin?.t ?? 0) + room };
  const filename = words.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  const file = { format: "png", scale: 2, width: chart.offsetWidth, height, filename };
  return window.Plotly.downloadImage({ data: chart.data, layout: { ...layout, height } }, file);
}

// Draws a figure, and keeps what somebody has zoomed into where `topic` and the figure's own axes are those of before.
async function drawChart(host, { data, layout }, topic = "") {
  // Plotly writes a zoom into what it is given.
  layout = structuredClone(layout);
  const axes = Object.entries(layout).filter(([name]) => AXIS.test(name)).map(([, axis]) => axis);
  const canZoom = axes.some((axis) => !axis.fixedrange);
  const config = { ...BARE, modeBarButtons: [[pictureButton()], ...(canZoom ? [ZOOMS] : [])] };
  const uirevision = JSON.stringify([topic, axes.map(({ range }) => range)]);
  await window.Plotly.react(host, data, { dragmode: canZoom && !isTouch() ? "zoom" : false, ...layout, uirevision }, config);
}

// A figure as it is in one of its frames: other numbers in some traces, other names on an axis.
function framed({ data, layout }, frame) {
  const changed = { data: [...data], layout: { ...layout } };
  frame.data.forEach((changes, i) => { changed.data[frame.traces[i]] = { ...data[frame.traces[i]], ...changes }; });
  for (const [name, changes] of Object.entries(frame.layout ?? {})) changed.layout[name] = { ...layout[name], ...changes };
  return changed;
}

// Where the subplots of a chart are on the screen, and where on their axes an event was. Plotly's events tell of neither
// labels nor cells without a number. The layout has the ranges, but nothing public has the pixels: the areas that Plotly
// listens on do.
function areas(chart) {
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

// The tiles of a grid, in cells, and whose they are.
function tilesOf({ tiles, heads, pitch_x, pitch_y, rows, columns, block }) {
  return tiles.map(([layer, head], place) => {
    return { layer, head, x: (place % heads) * pitch_x, y: Math.floor(place / heads) * pitch_y, rows, columns, block };
  });
}

// The tile of a grid that an event was on, as [layer, head].
function tileAt(chart, event) {
  const grid = chart.layout.meta, [area] = areas(chart);
  if (!grid || !area) return null;
  const head = Math.floor((area.x(event) + 0.5) / grid.pitch_x);
  // Not every run has all layers, and heads may stand in another order.
  const row = Math.max(0, Math.floor((area.y(event) + 0.5) / grid.pitch_y));
  return (head >= 0 && head < grid.heads && grid.tiles[row * grid.heads + head]) || null;
}

// The query and key that an event was on; a label alone names a row (key null) or a column (query null).
function cellAt(area, event, [left, below] = [90, 90]) {
  const { box } = area, right = event.clientX - box.left, down = event.clientY - box.top;
  const inColumns = right >= 0 && right < box.width, inRows = down >= 0 && down < box.height;
  const key = Math.round(area.x(event)), query = Math.round(area.y(event));
  if (inColumns && inRows) return { query, key };
  if (inRows && right < 0 && right > -left) return { query, key: null };
  return inColumns && down >= box.height && down < box.height + below ? { query: null, key } : null;
}

// ---- the numbers of a chart as a table, for the keyboard and for a screen reader

const MOST_LINES = 200;

// One table for each map, and one for each line of a chart: what it is called, its head, and its lines.
function tablesOf(chart) {
  const traces = chart.data.filter((trace) => trace.visible !== false && trace.hoverinfo !== "skip" && (trace.z ?? trace.x));
  const areaOf = ({ xaxis = "x", yaxis = "y" }) => xaxis + yaxis;
  const maps = Map.groupBy(traces.filter((trace) => trace.type === "heatmap"), areaOf);
  const lines = traces.filter((trace) => trace.type !== "heatmap");
  return [...[...maps.values()].map((map) => mapTable(chart, map)), ...lines.map((trace) => lineTable(chart, trace))];
}

// Heatmaps that lie upon each other, each with some of the cells: weights, and a trace for each reason of a mask.
function mapTable(chart, traces) {
  const maps = traces.map((trace) => ({ trace, cells: numbersOf(trace.z) })), [x, y] = axesOf(chart, traces[0]);
  const n = Math.max(...maps.map(({ cells }) => cells.length));
  const columns = [...Array(Math.max(...maps.map(({ cells }) => cells[0]?.length ?? 0))).keys()];
  const said = (row, column) => {
    // A cover over the rows to come has one number a row.
    const here = ({ cells }) => cells[row]?.[cells[row].length === 1 ? 0 : column];
    const map = maps.find((map) => Number.isFinite(here(map)));
    if (!map || map.trace.hoverinfo === "none") return "";
    const { hovertemplate = "", text } = map.trace, words = hovertemplate.match(/<b>([^%<]+)<\/b>/);
    return plainText(text?.[row]?.[column] ?? words?.[1] ?? digits(here(map)));
  };
  const head = ["", ...columns.map((column) => labelOf(x, column))];
  const rows = [...Array(Math.min(n, MOST_LINES)).keys()];
  const lines = rows.map((row) => [labelOf(y, row), ...columns.map((column) => said(row, column))]);
  return { caption: cutWords(n), head, lines };
}

function lineTable(chart, trace) {
  const [x, y] = axesOf(chart, trace), [across, down] = [numbersOf(trace.x), numbersOf(trace.y)];
  const title = (axis, name) => plainText(axis.title?.text || name), words = trace.hovertext ?? trace.text;
  const lines = Array.from(across.slice(0, MOST_LINES), (value, place) => [
    labelOf(x, value), labelOf(y, down[place]),
    plainText((Array.isArray(words) && words[place]) || trace.customdata?.[place]?.[0] || ""),
  ]);
  const caption = [plainText(trace.name ?? ""), cutWords(across.length)].filter(Boolean).join(": ");
  return { caption, head: [title(x, "x"), title(y, "y"), ""], lines: lines.filter(([at]) => at !== "") };
}

// What is left out, where a table is not whole.
function cutWords(n) {
  return n > MOST_LINES ? `the first ${MOST_LINES} of ${n.toLocaleString("en")} lines` : "";
}

function axesOf({ layout }, { xaxis = "x", yaxis = "y" }) {
  return [xaxis, yaxis].map((name) => layout[`${name[0]}axis${name.slice(1)}`] ?? {});
}

function labelOf(axis, value) {
  if ((value ?? null) === null) return "";
  return plainText(axis.ticktext?.[axis.tickvals?.indexOf(value)] ?? axis.labelalias?.[value] ?? digits(value));
}

function digits(value) {
  return typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(4))) : String(value);
}

// Numbers that travelled as bytes stay bytes in Plotly's data. A matrix becomes an array of rows.
function numbersOf(values) {
  if (!values?.bdata) return values ?? [];
  const { values: flat, shape: [rows, columns] } = unpacked(values);
  return !columns ? flat : Array.from({ length: rows }, (_, row) => flat.subarray(row * columns, (row + 1) * columns));
}

// Plotly's labels are markup, in which a token is escaped; a document of its own neither loads nor runs anything.
function plainText(label) {
  return new DOMParser().parseFromString(String(label).replaceAll("<br>", ", "), "text/html").body.textContent;
}

// A button behind the chart, seen when the keyboard is on it, that opens its numbers as tables below.
class NumbersTable {
  constructor(host) {
    this.host = host;
    this.button = Object.assign(document.createElement("button"), { type: "button", className: "numbers-switch" });
    this.button.textContent = "Numbers as a table";
    this.room = Object.assign(document.createElement("div"), { className: "numbers-table", tabIndex: 0, hidden: true });
    this.room.setAttribute("role", "region");
    host.after(this.button, this.room);
    this.button.addEventListener("click", () => this.open(this.room.hidden));
    this.room.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape") this.open(false);
    });
    this.open(false);
  }

  open(isOpen) {
    if (!isOpen && this.room.contains(document.activeElement)) this.button.focus();
    this.room.hidden = !isOpen;
    this.button.setAttribute("aria-expanded", String(isOpen));
    this.show();
  }

  // Again for each figure and step.
  show() {
    const words = this.host.getAttribute("aria-label") ?? "";
    this.button.setAttribute("aria-label", `Numbers as a table: ${words}`);
    this.room.setAttribute("aria-label", words);
    this.room.replaceChildren(...(this.room.hidden || !this.host.data ? [] : tablesOf(this.host).map(tableElement)));
  }
}

function tableElement({ caption, head, lines }) {
  const table = document.createElement("table"), line = (cells, isHead) => {
    const row = table.insertRow();
    cells.forEach((words, place) => {
      const cell = document.createElement(isHead || !place ? "th" : "td");
      if (cell.tagName === "TH") cell.scope = isHead ? "col" : "row";
      cell.textContent = words;
      row.append(cell);
    });
  };
  if (caption) table.createCaption().textContent = caption;
  line(head, true);
  for (const cells of lines) line(cells, false);
  return table;
}
