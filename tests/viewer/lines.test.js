// @ts-check
import assert from "node:assert/strict";
import test from "node:test";
import { strongLooks, withCrossings } from "../../transformer_viz/viewer/lines.js";

const of = (rows, masked = new Set()) => ({
  shape: [rows.length, rows[0].length], at: (query, key) => rows[query][key], isMasked: (query, key) => masked.has(`${query},${key}`),
});

test("the strong looks are those with 30 % of their row and more, as far as the step, and none that is masked", () => {
  const weights = of([[0.7, 0.3, 0], [0.29, 0.31, 0.4], [1, 0, 0]], new Set(["1,2"]));
  assert.deepEqual(strongLooks(weights, 1).map(({ query, key }) => [query, key]), [[0, 0], [0, 1], [1, 1]]);
});

test("a look crosses another that is later and looks further left; those of one token do not", () => {
  const crosses = (pairs) => withCrossings(pairs.map(([query, key]) => ({ query, key }))).map((link) => link.crosses);
  assert.deepEqual(crosses([[0, 0], [1, 1], [2, 2]]), [false, false, false]);
  assert.deepEqual(crosses([[0, 0], [1, 3], [2, 2]]), [false, true, true]);
  assert.deepEqual(crosses([[0, 1], [0, 2], [1, 2]]), [false, false, false]);
});
