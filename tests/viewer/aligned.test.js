import assert from "node:assert/strict";
import test from "node:test";
import { Aligned, weightWords } from "../../transformer_viz/viewer/aligned.js";
import { packed } from "./made.js";

// Three written words on four source words.
const weights = packed([0.9, 0.06, 0.04, 0, 0, 0.2, 0.7, 0.1, 0, 0, 0, 0], [3, 4]);
const aligned = new Aligned({ label: "L2 H1", weights });
const said = (place) => aligned.words(place, (strip, at) => `${strip[0]}${at}`).map(([, text]) => text).join("");

test("the word that each comes from, as far as the step; a row of nothing comes from none", () => {
  assert.deepEqual(aligned.crossing(2).map(({ query, key }) => [query, key]), [[0, 0], [1, 2]]);
  assert.deepEqual(aligned.crossing(0).map(({ key }) => key), [0]);
  assert.equal(aligned.best(2), null);
});

test("a pinned word is said with those that it goes with", () => {
  assert.equal(said({ query: 1, key: null }), " Pinned: o1 ← s2 0.70, s1 0.20, s3 0.10, says L2 H1");
  assert.equal(said({ query: null, key: 2 }), " Pinned: s2 → o1 0.70, says L2 H1");
  assert.equal(said({ query: null, key: 1 }), " Pinned: s1 → nothing, says L2 H1");
});

test("a weight is not rounded to nothing, nor to all", () => {
  assert.deepEqual([0, 0.004, 0.005, 0.994, 0.996, 1, NaN].map(weightWords),
    ["0.00", "< 0.01", "0.01", "0.99", "> 0.99", "1.00", "not a number"]);
});
