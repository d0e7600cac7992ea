import assert from "node:assert/strict";
import test from "node:test";
import { mapFigure, withMarks } from "../../transformer_viz/viewer/map.js";
import { Kind } from "../../transformer_viz/viewer/numbers.js";
import { secondTraces } from "../../transformer_viz/viewer/secondmap.js";
import { kind, packed, picture } from "./made.js";

const colours = { chosen: "blue", other: "grey" };
const candidates = [0, 1, 2].map((step) => ({ x: [0.9, 0.1], text: ["0.9", "0.1"], textposition: [], customdata: [],
  names: [`t${step}`, "u"], chosen: [true, false] }));
const run = { true: [4, null, 2], candidates };
const drawn = (made, place, more = {}) => mapFigure(made, place, { ...made.mapParts(false, false, {}), ...more }, run, colours);
const numbers = (z) => z.map((row) => [...row].map((x) => (Number.isNaN(x) ? null : Number(x.toFixed(2)))));

test("rows that have not happened are in no trace", () => {
  const { data, marks } = drawn(new Kind(...kind()), { layer: 0, head: 1, step: 1 });
  assert.deepEqual(numbers(data[0].z), [[0.15, 0.16, 0.17, null, null], [0.2, 0.21, 0.22, 0.23, 0.24], Array(5).fill(null)]);
  assert.deepEqual(numbers(data[1].z)[0], [null, null, null, 1, 1]);
  assert.deepEqual([data[2].x, data[2].y], [[2.5, 4.5, 4.5, 2.5, 2.5, null], [-0.5, -0.5, 0.5, 0.5, -0.5, null]]);
  assert.deepEqual([marks.row.x, marks.row.y], [[-0.5, 4.5, 4.5, -0.5, -0.5], [0.5, 0.5, 1.5, 1.5, 0.5]]);
  assert.deepEqual([marks.rings.x, marks.rings.y], [[4], [0]]);
});

test("where labels are not unique a cell has the ids of its tokens, the same for every head and step", () => {
  const rows = ["query (id 2)", "query (id 7)", "query (id 1)"], keys = [4, 4, 9, 3, 0].map((id) => `key (id ${id})`);
  const made = new Kind(...kind({ picture: { ...picture(), ids: [rows, keys] } }));
  const [first, second] = [0, 1].map((head) => drawn(made, { layer: 1, head, step: head }).data[0].text);
  assert.equal(first[1][2], "query (id 7), key (id 9)");
  assert.deepEqual([first.length, first[0].length], [3, 5]);
  assert.equal(first, second);
  assert.ok(!("text" in drawn(new Kind(...kind()), { layer: 0, head: 0, step: 0 }).data[0]));
});

test("an encoder's map is whole, and no row of it is a step's", () => {
  const made = new Kind(...kind({ picture: picture({ grows: false, row: false }), linked: { kind: "encoder" } }));
  const figure = drawn(made, { layer: 1, head: 0, step: 0 });
  assert.ok(figure.data[0].z.flatMap((row) => [...row]).filter(Number.isNaN).length === 2);
  assert.equal(figure.marks.row, null);
  assert.deepEqual(figure.marks.rings.x, []);
});

test("the candidates are those of the step, and the ring of the step is thick", () => {
  const made = new Kind(...kind({ picture: picture({ bars: true }) })), figure = drawn(made, { layer: 0, head: 0, step: 2 });
  const bars = figure.data.find(({ type }) => type === "bar");
  assert.deepEqual([bars.x, bars.y, bars.marker.color], [[0.9, 0.1], [0, 1], ["blue", "grey"]]);
  assert.deepEqual(figure.layout.yaxis2, { tickvals: [0, 1], ticktext: ["t2", "u"] });
  assert.deepEqual(figure.marks.rings.marker.line.width, [1.5, 3]);
});

test("what somebody saves has the marks where Python draws them", () => {
  const figure = drawn(new Kind(...kind({ picture: picture({ bars: true }) })), { layer: 0, head: 0, step: 0 });
  assert.deepEqual(withMarks(figure).data.map(({ type, mode }) => mode ?? type), ["heatmap", "heatmap", "lines", "lines", "markers", "bar"]);
});

test("a second map: numbers, what cannot be asked by why, dots and signs, as far as the step", () => {
  const grey = (isLater) => ({ isLater, trace: { isLater } });
  const template = { numbers: { name: "n" }, greys: [grey(true), grey(false)], dots: {}, full: 2, hasLater: true,
    signs: { trace: { textfont: { size: 9 } }, inks: ["ink", "paper"] } };
  const values = Float32Array.from([NaN, NaN, NaN, 1, -1.9, NaN, -0.05, -0.5, 2]);
  const [map, later, nothing, dots, signs] = secondTraces(template, values, { rows: 3, columns: 3, until: 2 });
  assert.deepEqual(numbers(map.z), [[null, null, null], [1, -1.9, null], [null, null, null]]);
  assert.deepEqual(numbers(later.z), [[null, 1, 1], [null, null, 1], [null, null, null]]);
  assert.deepEqual(numbers(nothing.z), [[1, null, null], [null, null, null], [null, null, null]]);
  assert.deepEqual(dots.y.filter((y) => y !== null).every((y) => y < 1.6), true);
  assert.deepEqual([signs.x, signs.y, signs.textfont.color], [[1], [1], ["paper"]]);
});

test("a gradient is drawn as shares of each row's largest", () => {
  const template = { numbers: {}, greys: [], dots: null, signs: null, full: 1, isByRow: true };
  const [map] = secondTraces(template, Float32Array.from([1, 4, 0, 0]), { rows: 2, columns: 2, until: 2 });
  assert.deepEqual(numbers(map.z), [[0.25, 1], [0, 0]]);
  assert.deepEqual(packed([1], [1]).shape, [1]);
});

test("a row that a question covers is there before its step, and rows after it are not", () => {
  const covered = { covered: { type: "heatmap" } }, at = (step, about) => {
    const made = new Kind(...kind({ covered: [1, 3] }));
    const { data } = mapFigure(made, { layer: 0, head: 0, step }, { ...made.mapParts(false, false, {}), ...covered }, { ...run, ...about }, colours);
    return data.find(({ z }) => z?.[0]?.length === 1).z.map(([cell]) => (cell === 1 ? 1 : 0));
  };
  assert.deepEqual(at(0, { coveredFrom: 1 }), [0, 1, 0]);
  assert.deepEqual(at(0, { asked: { kind: "cross", row: 1 } }), [0, 1, 0]);
  assert.deepEqual(at(0, { asked: { kind: "encoder", row: 2 } }), [0, 0, 0]);
  assert.deepEqual(at(2, { coveredFrom: 1 }), [0, 1, 1]);
});
