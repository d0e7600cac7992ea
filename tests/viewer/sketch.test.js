import assert from "node:assert/strict";
import test from "node:test";
import { recoloured, shadesOf, upTo } from "../../transformer_viz/viewer/colours.js";
import { paint } from "../../transformer_viz/viewer/sketch.js";
import { focusOf, outlined } from "../../transformer_viz/viewer/smallmaps.js";

// Notes what is painted, with its colour.
class Paper {
  constructor() {
    this.painted = [];
    for (const name of ["save", "restore", "beginPath", "rect", "clip", "moveTo", "lineTo", "fill", "stroke"]) this[name] = () => {};
  }

  fillRect(...box) { this.painted.push([this.fillStyle, ...box]); }
  fillText(text) { this.painted.push([this.fillStyle, text]); }
  measureText(text) { return { width: 6 * text.length }; }
}

// A subplot of 3 columns and 2 rows, 30 by 20 pixels, at (100, 50).
const place = { left: 100, top: 50, width: 30, height: 20, right: (x) => 105 + 10 * x, down: (y) => 55 + 10 * y };
const ground = "#ffffff";

function painted(data, layout = {}, places = { xy: place }, drawn = null) {
  const paper = new Paper();
  paint(paper, { data, layout: { plot_bgcolor: ground, paper_bgcolor: ground, font: { family: "f", color: "ink" }, ...layout } }, places, drawn);
  return paper.painted;
}

test("each cell has the colour of its number, and what has none is the ground", () => {
  const coloraxis = { colorscale: [[0, "#000000"], [0.5, "#ff0000"], [1, "#ffffff"]], cmin: 0, cmax: 2 };
  const z = [Float32Array.of(0, 1, NaN), Float32Array.of(2, 9, 0.5)];
  const [cleared, ...cells] = painted([{ type: "heatmap", z, xgap: 1, coloraxis: "coloraxis" }], { coloraxis });
  assert.deepEqual(cleared, [ground, 100, 50, 30, 20]);
  assert.deepEqual(cells.map(([colour]) => colour).map((colour) => colour.match(/\d+/g).map(Number)),
    [[0, 0, 0], [255, 1, 1], [255, 255, 255], [255, 255, 255], [128, 0, 0]]);
  assert.deepEqual(cells.map(([, ...box]) => box),
    [[100.5, 50.5, 9, 9], [110.5, 50.5, 9, 9], [100.5, 60.5, 9, 9], [110.5, 60.5, 9, 9], [120.5, 60.5, 9, 9]]);
});

test("candidates: bars as long as they are probable, numbers with their power of ten, names", () => {
  const bars = { type: "bar", xaxis: "x2", yaxis: "y2", x: [0.8, 1e-9], y: [0, 1], text: ["0.8000", "1·10<sup>−9</sup>"],
    textposition: ["inside", "outside"], marker: { color: ["blue", "grey"] }, width: 0.6, textfont: { size: 10 } };
  const layout = { xaxis2: { tickvals: [0, 1] }, yaxis2: { tickvals: [0, 1], ticktext: [], tickfont: { size: 10, color: "ink" } } };
  const across = { ...place, right: (x) => 100 + 30 * x };
  const marks = painted([bars], layout, { x2y2: across });
  assert.deepEqual(marks.filter(([colour]) => colour === "blue"), [["blue", 100, 52, 24, 6]]);
  assert.deepEqual(marks.filter(([, words]) => typeof words === "string").map(([colour, words]) => [colour, words]),
    [["#ffffff", "0.8000"], ["ink", "1·10"], ["ink", "−9"]]);
});

test("what Plotly has drawn alike is not painted over", () => {
  const bars = (x) => ({ type: "bar", xaxis: "x2", yaxis: "y2", x: [x], y: [0], text: [String(x)],
    textposition: ["outside"], marker: { color: ["blue"] }, width: 0.6, textfont: { size: 10 } });
  const named = (name) => ({ xaxis2: { tickvals: [] }, yaxis2: { tickvals: [0], ticktext: [name], tickfont: { size: 10, color: "ink" } } });
  const of = (x, name, drawn) => painted([bars(x)], named(name), { x2y2: place }, drawn).filter(([, words]) => typeof words === "string");
  const drawn = { data: [bars(0.5)], layout: named("a") };
  assert.deepEqual(of(0.5, "a", drawn), []);
  assert.deepEqual(of(0.25, "a", drawn).map(([, words]) => words), ["0.25"], "the number alone is another");
  assert.deepEqual(of(0.5, "b", drawn).map(([, words]) => words), ["b", "0.5"]);
});

test("of small maps the tiles are cleared, and captions stay", () => {
  const meta = { tiles: [[0, 0], [0, 1]], heads: 2, pitch_x: 2, pitch_y: 3, rows: 2, columns: 1, block: [1, 1] };
  const captions = { type: "scatter", mode: "text", x: [0, 2], y: [-1, -1], text: ["L1 H1", "L1 H2"], textfont: { size: 9, color: ["a", "b"] } };
  assert.deepEqual(painted([captions], { meta }), [[ground, 100, 50, 10, 20], [ground, 120, 50, 10, 20]]);
});

test("the tiles in focus: one head, or all of a layer for their mean", () => {
  const meta = { tiles: [[3, 0], [3, 1], [8, 0]], heads: 2, pitch_x: 4, pitch_y: 3, rows: 2, columns: 3, block: [1, 1] };
  const text = ["L4 H1", "L4 H2", "L9 H1"], captions = { x: [1, 5, 1], y: [-1, -1, 2], text, textfont: { size: 9 } };
  const figure = { data: [{ z: [] }, { line: { color: "thin" } }, captions], layout: { meta } };
  const one = focusOf(figure, { layer: 3, head: 1 });
  assert.deepEqual([one.boxes, one.words], [[[3.5, -0.5, 6.5, 1.5]], [[5, -1, "L4 H2"]]]);
  assert.equal(focusOf(figure, { layer: 3, head: "mean" }).boxes.length, 2);
  const { data } = outlined(figure, { layer: 8, head: 0 }, { accent: "red", muted: "grey" });
  assert.deepEqual(data[2].line, { color: "red", width: 2.5 });
  assert.deepEqual(data[2].x, [-0.5, 2.5, 2.5, -0.5, -0.5, null]);
  assert.deepEqual(data[3].textfont.color, ["grey", "grey", "red"]);
});

test("shades go from the first colour to the last, and a dark theme has its own", () => {
  const shades = shadesOf([[0, "#000"], [1, "rgb(255, 0, 10)"]]);
  assert.deepEqual([shades.length, shades[0], shades[255], shades[51]], [256, "rgb(0, 0, 0)", "rgb(255, 0, 10)", "rgb(51, 0, 2)"]);
  assert.deepEqual(recoloured({ a: ["#fff", { b: "#000" }], c: 3, d: null }, { "#fff": "#111" }), { a: ["#111", { b: "#000" }], c: 3, d: null });
  assert.deepEqual(upTo(0.3, { colorbar: {} }), { colorbar: { tickvals: [0, 0.15, 0.3], ticktext: ["0", "0.15", "0.3"] }, cmax: 0.3 });
});
