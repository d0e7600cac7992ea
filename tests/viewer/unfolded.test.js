import assert from "node:assert/strict";
import test from "node:test";
import { unfolded } from "../../transformer_viz/viewer/strips.js";
import { isWholeAt, laterOf, unfoldedFigure } from "../../transformer_viz/viewer/unfolded.js";

test("tokens to come have neither a text nor a title that tells; what was given is there", () => {
  const tokens = ["a", "b", "c", "d"].map((text, t) => ({ text, title: `step ${t + 1}: ${text}, probability 50 %` }));
  assert.deepEqual(unfolded(tokens, 0, 2).map(({ text }) => text), ["a", "b", "", ""]);
  assert.deepEqual(unfolded(tokens, 2, 0).map(({ title }) => title),
    ["step 1: a, probability 50 %", "step 2: b, probability 50 %", "step 3: c, probability 50 %", "step 4: not written yet"]);
});

test("names of rows to come are blank on the axes that would tell them", () => {
  const axis = { tickvals: [0, 2], ticktext: ["1·a", "3·c"], labelalias: { 1: "2·b", 3: "4·d" } };
  const figure = { data: [], layout: { yaxis: axis, xaxis: axis, meta: { unwritten: ["yaxis"] } } };
  const { layout } = unfoldedFigure(figure, 1);
  assert.deepEqual(layout.yaxis.ticktext, ["1·a", ""]);
  assert.deepEqual(layout.yaxis.labelalias, { 1: "2·b", 3: "" });
  assert.deepEqual(layout.xaxis, axis);
});

test("small maps have no rows to come, and a thinned row is there when its first step is", () => {
  const z = [[1, 1], [1, 1], [1, 1], [1, 1], [1, 1], [1, 1]].map((row) => Float32Array.from(row));
  const { data } = unfoldedFigure({ data: [{ z }, { x: [1] }], layout: { meta: { pitch_y: 3, block: [2, 1] } } }, 2);
  assert.deepEqual(data[0].z.map(([first]) => first), [1, 1, NaN, 1, 1, NaN]);
  assert.deepEqual(data[1], { x: [1] });
  const codes = unfoldedFigure({ data: [{ z: [Uint8Array.of(9)] }], layout: { meta: { pitch_y: 3, block: [1, 1] } } }, -1);
  assert.deepEqual([...codes.data[0].z[0]], [0]);
});

test("the star of the best head comes with the last row", () => {
  const figure = { data: [{ text: ["L1 H1", "L1 H2 ★"] }], layout: { meta: { pitch_y: 3, rows: 2, block: [1, 1] } } };
  assert.deepEqual(unfoldedFigure(figure, 0).data[0].text, ["L1 H1", "L1 H2"]);
  assert.deepEqual(unfoldedFigure(figure, 1).data[0].text, ["L1 H1", "L1 H2 ★"]);
});

test("what is still to come of small maps is covered from the next row on, of each tile, and nothing once all is there", () => {
  const meta = { tiles: [[0, 0], [0, 1]], heads: 2, pitch_x: 4, pitch_y: 5, rows: 3, columns: 2, block: [2, 1] };
  assert.deepEqual(laterOf(meta, 2), [[-0.5, 1.5, 1.5, 2.5], [3.5, 1.5, 5.5, 2.5]]);
  assert.deepEqual(laterOf(meta, -1), [[-0.5, -0.5, 1.5, 2.5], [3.5, -0.5, 5.5, 2.5]]);
  assert.deepEqual(laterOf(meta, 4), []);
  for (const step of [-1, 0, 1, 2, 3, 4]) assert.equal(isWholeAt(meta, step), laterOf(meta, step).length === 0);
});

test("small maps are covered where a saved picture of the same step has no numbers", () => {
  const meta = { tiles: [[0, 0]], heads: 1, pitch_x: 2, pitch_y: 7, rows: 6, columns: 1, block: [2, 1] };
  const z = Array.from({ length: 6 }, () => Float32Array.of(1));
  for (let step = -1; step < 12; step += 1) {
    const blank = unfoldedFigure({ data: [{ z }], layout: { meta } }, step).data[0].z.map(([one]) => Number.isNaN(one));
    const [box] = laterOf(meta, step), covered = blank.map((_, row) => Boolean(box) && row >= box[1] && row <= box[3]);
    assert.deepEqual(covered, blank);
  }
});
