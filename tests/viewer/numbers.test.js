import assert from "node:assert/strict";
import test from "node:test";
import { Kind } from "../../transformer_viz/viewer/numbers.js";
import { codes, kind, packed } from "./made.js";

const close = (found, wanted) => assert.deepEqual([...found].map((x) => x.toFixed(4)), wanted.map((x) => x.toFixed(4)));

test("one head, and the mean and the largest of a layer's", () => {
  const made = new Kind(...kind());
  close(made.weightsOf(1, 0).subarray(0, 3), [0.3, 0.31, 0.32]);
  close(made.weightsOf(1, "mean").subarray(0, 2), [0.375, 0.385]);
  close(made.weightsOf(1, "max").subarray(0, 2), [0.45, 0.46]);
  assert.equal(made.mostOf(0, 0).toFixed(2), "0.14");
});

test("what is masked in all heads is masked in their mean", () => {
  const reasons = codes([...[0, 2, 0, ...Array(12).fill(0)], ...[4, 4, 0, ...Array(12).fill(0)], ...Array(30).fill(0)], [2, 2, 3, 5]);
  const made = new Kind(...kind({ reasons }));
  assert.deepEqual([...made.reasonsOf(0, 1).subarray(0, 3)], [4, 4, 0]);
  assert.deepEqual([...made.reasonsOf(0, "mean").subarray(0, 3)], [0, 4, 0]);
});

test("each head has its sentences, and an encoder one for all", () => {
  const made = new Kind(...kind());
  assert.deepEqual(made.sentencesOf(1, "mean")[0], [["plain", "a"]]);
  assert.deepEqual(made.sentencesOf(0, 1)[2], [["plain", "a"]]);
  const [data, pieces] = kind({ sentences: [[[[1], [2], [0]]]] });
  assert.deepEqual(new Kind(data, pieces).sentencesOf(1, 1)[1], [["code", "c"]]);
});

test("the key with the most weight; none in a row of zeros, nor in another kind", () => {
  const made = new Kind(...kind());
  assert.equal(made.lookedAt(0, 0, 1), 4);
  const nothing = new Kind(...kind({ weights: packed(Array(60).fill(0), [2, 2, 3, 5]) }));
  assert.equal(nothing.lookedAt(0, 0, 1), null);
  assert.equal(new Kind(...kind({ linked: { kind: "decoder" } })).lookedAt(0, 0, 1), null);
});

test("numbers that come a head at a time", () => {
  const made = new Kind(...kind({ weights: undefined, reasons: undefined, sentences: [], shape: [2, 2, 3, 5] }));
  assert.ok(!made.has(1, 0));
  assert.ok(made.weightsOf(1, 0).every(Number.isNaN));
  assert.deepEqual(made.sentencesOf(1, 0), [[], [], []]);
  assert.equal(made.lookedAt(1, 0, 0), null);
  const weights = packed(Array.from({ length: 15 }, (_, i) => i), [3, 5]);
  made.add(1, 0, { weights, reasons: codes(Array(15).fill(2), [3, 5]), sentences: [[["plain", "x"]], [], []] });
  assert.ok(made.has(1, 0) && !made.has(1, 1) && !made.has(1, "mean"));
  assert.equal(made.weightsOf(1, 0)[14], 14);
  assert.equal(made.reasonsOf(1, 0)[0], 2);
  assert.deepEqual(made.sentencesOf(1, 0)[0], [["plain", "x"]]);
});

test("a measure in the place of the weights, and one beside them", () => {
  const numbers = packed(Array.from({ length: 60 }, (_, i) => -i), [2, 2, 3, 5]), values = packed([...Array(15).keys()], [3, 5]);
  const measured = [[[[0], [1], [2]]]];
  const made = new Kind(...kind({ measures: { value: { weights: numbers, word: "norm", full: 59, measured }, cause: { second: { values } } } }));
  assert.equal(made.by("weights"), made);
  const value = made.by("value");
  assert.equal(value.weightsOf(0, 1)[0], -15);
  assert.deepEqual([value.word, value.full, value.title], ["norm", 59, "cross-attention"]);
  assert.deepEqual(value.measuredOf(1, "max")[1], [["strong", "b"]]);
  const cause = made.by("cause");
  assert.equal(cause.weightsOf(0, 1)[0].toFixed(2), "0.15");
  assert.equal(cause.second.of(1, "mean")[14], 14);
  assert.equal(made.weightsOf(0, 1)[0].toFixed(2), "0.15");
  assert.equal(made.measuredOf(0, 0), null);
});
