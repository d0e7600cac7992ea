// @ts-check
import assert from "node:assert/strict";
import test from "node:test";
import { pathBetween, strongLooks, withCrossings } from "../../transformer_viz/viewer/lines.js";

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

test("between columns a line goes from side to side, and within one in a bow that is right of it", () => {
  const box = (left, top) => ({ left, top, right: left + 40, bottom: top + 20, width: 40, height: 20 });
  const numbers = (path) => path.match(/-?[\d.]+/g).map(Number), origin = { left: 0, top: 0 };
  const across = numbers(pathBetween(box(200, 100), box(10, 40), origin, Infinity));
  assert.deepEqual([...across.slice(0, 2), ...across.slice(-2)], [200, 110, 50, 50]);
  const within = numbers(pathBetween(box(200, 100), box(200, 40), origin, Infinity));
  assert.deepEqual([...within.slice(0, 2), ...within.slice(-2)], [240, 110, 240, 50]);
  assert.ok(within[2] > 240 && within[4] > 240);
});
