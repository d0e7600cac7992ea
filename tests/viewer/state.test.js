import assert from "node:assert/strict";
import test from "node:test";
import { clamped } from "../../transformer_viz/viewer/state.js";

const kinds = {
  encoder: { numbers: [0, 1], heads: 4, rows: 5, columns: 5 },
  cross: { numbers: [2, 7], heads: 3, rows: 7, columns: 5 },
};
const run = { steps: 7, kinds, measures: [{ value: "weights" }, { value: "cause" }] };

test("nothing that is wanted is cross-attention from its beginning", () => {
  assert.deepEqual(clamped(run, {}),
    { kind: "cross", layer: 2, head: 0, step: 0, pin: [], lines: "auto", measure: "weights" });
});

test("what a run has stays as it is", () => {
  const wanted = { kind: "encoder", layer: 1, head: 3, step: 6, pin: [4, null], lines: "none", measure: "cause" };
  assert.deepEqual(clamped(run, wanted), wanted);
});

test("what it has not becomes what is nearest", () => {
  const wanted = { kind: "cross", layer: 1, head: 9, step: 99, pin: [2, 5], lines: "thick", measure: "value" };
  assert.deepEqual(clamped(run, wanted),
    { kind: "cross", layer: 2, head: 2, step: 6, pin: [], lines: "auto", measure: "weights" });
  assert.equal(clamped(run, { step: Infinity }).step, 6);
  assert.equal(clamped(run, { step: -3 }).step, 0);
  assert.equal(clamped(run, { head: "max" }).head, "max");
  assert.equal(clamped(run, { kind: "__proto__" }).kind, "cross");
});

test("a pin of another kind is let go", () => {
  assert.deepEqual(clamped(run, { kind: "decoder", pin: [1, 1] }).pin, []);
  assert.deepEqual(clamped(run, { kind: "cross", pin: [null, null] }).pin, []);
});
