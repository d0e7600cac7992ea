import assert from "node:assert/strict";
import test from "node:test";
import { withPress } from "../../transformer_viz/viewer/presses.js";

test("each press has a higher number than all before it, also of what is mounted anew; the newest twenty are kept", () => {
  let presses = [];
  for (let what = 0; what < 25; what += 1) presses = withPress(presses, what);
  assert.deepEqual(presses.map(({ what }) => what), Array.from({ length: 20 }, (_, at) => at + 5));
  const [anew] = withPress([], "x");
  const numbers = [...presses.map(({ n }) => n), anew.n];
  assert.deepEqual(numbers, [...new Set(numbers)].sort((a, b) => a - b));
});
