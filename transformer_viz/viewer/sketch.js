// @ts-check
// A sketch of a figure over its chart: Plotly takes 50 ms for a figure, and what is pressed is there in the next frame. It
// stands until Plotly has drawn the same.
import { numbersOf } from "./arrays.js";
import { shadesOf } from "./colours.js";
import { plainText } from "./sentence.js";

const MOST_RECTANGLES = 5000;

export class Sketch {
  constructor(host) {
    this.host = host;
    this.sheet = document.createElement("canvas");
    const looks = { position: "absolute", inset: 0, width: "100%", height: "100%", zIndex: 1, display: "none" };
    Object.assign(this.sheet.style, looks);
    this.sheet.setAttribute("aria-hidden", "true");
  }

  // `places` are the subplots of the chart, in its pixels, as `placesOn` gives them; `drawn` is the figure that Plotly drew.
  show(figure, places, { width, height }, drawn = null) {
    const scale = window.devicePixelRatio, { sheet } = this, size = [width, height].map((pixels) => Math.round(pixels * scale));
    if (sheet.parentElement !== this.host) this.host.append(sheet);
    if (!size.every(Boolean)) return;
    if (String(size) !== String([sheet.width, sheet.height])) [sheet.width, sheet.height] = size;
    // What is painted once is painted by the processor: a card would take longer to begin.
    const paper = sheet.getContext("2d", { willReadFrequently: true });
    paper.setTransform(scale, 0, 0, scale, 0, 0);
    paper.clearRect(0, 0, width, height);
    paint(paper, figure, places, drawn);
    sheet.style.display = "";
    this.host.setAttribute("aria-busy", "true");
  }

  hide() {
    this.sheet.style.display = "none";
    this.host.removeAttribute("aria-busy");
  }
}

// Paints all traces of a figure that its subplots have; where names or candidates are as they were drawn, these are seen.
export function paint(paper, { data, layout }, places, drawn = null) {
  for (const [name, place] of Object.entries(places)) {
    const axis = `yaxis${name.split("y")[1]}`, names = layout[axis]?.ticktext, traces = tracesOn(data, name);
    const isOfBars = traces.some(({ type }) => type === "bar"), isNamed = drawn && String(drawn.layout[axis]?.ticktext) === String(names);
    if (isOfBars && isNamed && barsOf(traces) === barsOf(tracesOn(drawn.data, name))) continue;
    if (!isNamed && (isOfBars || layout.meta?.unwritten?.includes(axis))) paintNames(paper, layout[axis], place, layout, drawn?.layout[axis]);
    paper.save();
    paper.beginPath();
    paper.rect(place.left, place.top, place.width, place.height);
    paper.clip();
    clear(paper, layout, place);
    if (isOfBars) paintGrid(paper, layout[`xaxis${name.slice(1).split("y")[0]}`], place);
    for (const trace of traces) (PAINTERS[trace.type] ?? paintLines)(paper, trace, place, layout);
    paper.restore();
  }
}

const tracesOn = (data, name) => data.filter(({ xaxis = "x", yaxis = "y" }) => xaxis + yaxis === name);
const barsOf = (traces) => JSON.stringify(traces.map(({ x, text, marker }) => [x, text, marker?.color]));

const PAINTERS = { heatmap: paintCells, bar: paintBars };

// The tiles of small maps alone: their captions and frames stay Plotly's.
function clear(paper, { meta, plot_bgcolor: ground }, place) {
  paper.fillStyle = ground;
  if (!meta?.tiles) return paper.fillRect(place.left, place.top, place.width, place.height);
  meta.tiles.forEach((_, i) => {
    const x = (i % meta.heads) * meta.pitch_x - 0.5, y = Math.floor(i / meta.heads) * meta.pitch_y - 0.5;
    fillBox(paper, place, x, y, x + meta.columns, y + meta.rows, 0);
  });
}

function fillBox(paper, place, x0, y0, x1, y1, gap) {
  const [left, right] = [x0, x1].map((x) => Math.round(place.right(x))), [top, bottom] = [y0, y1].map((y) => Math.round(place.down(y)));
  paper.fillRect(left + gap / 2, top + gap / 2, right - left - gap, bottom - top - gap);
}

// Where the first cell is of a map that is a part of another one. What covers whole rows begins with all of them.
const cornerOf = ({ x0 = 0, y0 = 0, dx }) => [dx === undefined ? x0 : 0, y0];

// A map's cells, each in its colour; of a cell without a number the ground is seen.
export function paintCells(paper, trace, place, layout) {
  const rows = numbersOf(trace.z), { scale, least, most } = scaleOf(trace, layout), shades = shadesOf(scale);
  if (rows.length * (rows[0]?.length ?? 0) > MOST_RECTANGLES) return paintImage(paper, rows, shades, { least, most }, place, cornerOf(trace));
  const [x0, y0] = cornerOf(trace), placeOf = (value) => Math.max(0, Math.min(255, Math.round(((value - least) / (most - least)) * 255)));
  const gap = trace.xgap ?? 0, lefts = edges(place.right, x0, rows[0]?.length ?? 0), tops = edges(place.down, y0, rows.length);
  rows.forEach((row, y) => row.forEach((value, x) => {
    if (!Number.isFinite(value)) return;
    paper.fillStyle = shades[placeOf(value)];
    paper.fillRect(lefts[x] + gap / 2, tops[y] + gap / 2, lefts[x + 1] - lefts[x] - gap, tops[y + 1] - tops[y] - gap);
  }));
}

// Where the cells of an axis begin and end, in whole pixels.
const edges = (pixel, first, n) => Array.from({ length: n + 1 }, (_, i) => Math.round(pixel(first + i - 0.5)));

// A shade as the four bytes of a pixel that is not transparent.
function wordOf(shade) {
  const bytes = Uint8Array.of(...shade.match(/\d+/g).map(Number), 255);
  return new Uint32Array(bytes.buffer)[0];
}

function scaleOf({ coloraxis, colorscale, zmin, zmax }, layout) {
  const { colorscale: scale, cmin: least, cmax: most } = coloraxis ? layout[coloraxis] : { colorscale, cmin: zmin, cmax: zmax };
  return { scale, least: least ?? 0, most: most ?? 1 };
}

// Of a long run: a pixel a cell, drawn larger.
function paintImage(paper, rows, shades, { least, most }, place, [x0, y0]) {
  const words = Uint32Array.from(shades, wordOf), perNumber = 255 / (most - least);
  const columns = rows[0].length, small = new OffscreenCanvas(columns, rows.length), sheet = small.getContext("2d");
  const image = sheet.createImageData(columns, rows.length);
  // A whole pixel at once: a quarter of a million of them for each press.
  const pixels = new Uint32Array(image.data.buffer);
  for (let y = 0, at = 0; y < rows.length; y += 1) {
    const row = rows[y];
    for (let x = 0; x < columns; x += 1, at += 1) {
      const shade = (row[x] - least) * perNumber;
      // No number is neither less nor more.
      if (shade < 255) pixels[at] = words[shade > 0 ? (shade + 0.5) | 0 : 0];
      else if (shade >= 255) pixels[at] = words[255];
    }
  }
  sheet.putImageData(image, 0, 0);
  paper.imageSmoothingEnabled = false;
  const [left, top] = [place.right(x0 - 0.5), place.down(y0 - 0.5)];
  paper.drawImage(small, left, top, place.right(x0 + columns - 0.5) - left, place.down(y0 + rows.length - 0.5) - top);
}

// Outlines, and what is hatched or dotted within them.
function paintLines(paper, { x = [], y = [], mode, line, fill, fillpattern, text, textfont }, place) {
  if (mode === "text") return paintSigns(paper, { x, y, text, textfont }, place);
  paper.beginPath();
  let isOpen = false;
  x.forEach((at, i) => {
    if (at === null) return void (isOpen = false);
    paper[isOpen ? "lineTo" : "moveTo"](place.right(at), place.down(y[i]));
    isOpen = true;
  });
  if (fill && fillpattern) return paintHatch(paper, fillpattern, place);
  if (!mode?.includes("lines") || !line?.width) return undefined;
  Object.assign(paper, { strokeStyle: line.color, lineWidth: line.width });
  return paper.stroke();
}

function paintHatch(paper, { bgcolor, fgcolor, size, solidity }, { left, top, width, height }) {
  paper.fillStyle = bgcolor;
  paper.fill();
  paper.save();
  paper.clip();
  paper.beginPath();
  for (let x = left - height; x < left + width; x += size) {
    paper.moveTo(x, top + height);
    paper.lineTo(x + height, top);
  }
  Object.assign(paper, { strokeStyle: fgcolor, lineWidth: size * solidity });
  paper.stroke();
  paper.restore();
}

function paintSigns(paper, { x, y, text = [], textfont = {} }, place) {
  Object.assign(paper, { font: `${textfont.size}px sans-serif`, textAlign: "center", textBaseline: "middle" });
  // Captions of small maps stand between their tiles, where nothing is painted.
  if (!Array.isArray(textfont.color) || text[0]?.length > 1) return;
  text.forEach((sign, i) => {
    paper.fillStyle = textfont.color[i];
    paper.fillText(sign, place.right(x[i]), place.down(y[i]));
  });
}

function paintGrid(paper, { tickvals = [], gridcolor }, place) {
  Object.assign(paper, { strokeStyle: gridcolor, lineWidth: 1 });
  paper.beginPath();
  for (const value of tickvals) {
    const x = Math.round(place.right(value)) + 0.5;
    paper.moveTo(x, place.top);
    paper.lineTo(x, place.top + place.height);
  }
  paper.stroke();
}

// The candidates, each with its number within or behind its bar.
function paintBars(paper, { x, y, text, textposition, marker, width, textfont }, place, layout) {
  x.forEach((value, i) => {
    const end = place.right(value), isInside = textposition[i] === "inside", [first, power] = text[i].split(/<\/?sup>/);
    paper.fillStyle = marker.color[i];
    fillBox(paper, place, 0, y[i] - width / 2, value, y[i] + width / 2, 0);
    const size = textfont.size, middle = place.down(y[i]), font = layout.font.family;
    paper.fillStyle = isInside ? "#ffffff" : layout.font.color;
    Object.assign(paper, { font: `${size}px ${font}`, textAlign: isInside ? "right" : "left", textBaseline: "middle" });
    paper.fillText(first, end + (isInside ? -3 : 3), middle);
    if (!power) return;
    const after = end + 3 + paper.measureText(first).width;
    paper.font = `${size * 0.7}px ${font}`;
    paper.fillText(power, after, middle - size * 0.4);
  });
}

// The names on an axis of rows, in the place of those that Plotly drew.
function paintNames(paper, { tickvals, ticktext, tickfont, ticklabelstandoff = 0 }, place, layout, drawn) {
  const { size, color } = tickfont, names = ticktext.map(plainText), before = (drawn?.ticktext ?? []).map(plainText);
  paper.font = `${ticktext[0]?.startsWith("<b>") ? "bold " : ""}${size}px ${layout.font.family}`;
  const widest = Math.max(0, ...[...names, ...before].map((name) => paper.measureText(name).width));
  paper.fillStyle = layout.paper_bgcolor;
  paper.fillRect(place.left - widest - ticklabelstandoff - 6, place.top - size / 2, widest + ticklabelstandoff + 5, place.height + size);
  Object.assign(paper, { fillStyle: color, textAlign: "right", textBaseline: "middle" });
  tickvals.forEach((value, i) => paper.fillText(names[i], place.left - 4 - ticklabelstandoff, place.down(value)));
}
