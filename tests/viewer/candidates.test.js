import assert from "node:assert/strict";
import test from "node:test";
import { percentWords, probabilityWords } from "../../transformer_viz/viewer/brief.js";
import { candidatesAt, hasOneEach } from "../../transformer_viz/viewer/candidates.js";

const COLOURS = { chosen: "blue", other: "grey" };

function candidates(...probabilities) {
  return {
    x: probabilities, text: probabilities.map((p) => probabilityWords(p)), textposition: probabilities.map(() => "inside"),
    customdata: probabilities.map(() => []), names: probabilities.map((_, place) => `token ${place}`),
    chosen: probabilities.map((_, place) => place === 0),
  };
}

test("where one candidate says all, its probability stands beside its name and there is no bar", () => {
  const { bars, names } = candidatesAt(candidates(0.9999, 1e-5, 1e-6), COLOURS, true);
  assert.deepEqual([bars.x, bars.text, bars.textposition, names.ticktext], [[0], ["over 99 %"], ["outside"], ["token 0"]]);
  assert.deepEqual(candidatesAt(candidates(0.6, 0.3, 1e-6), COLOURS, true).bars.x, [0.6, 0.3]);
  assert.deepEqual(candidatesAt(candidates(0.9999, 1e-5), COLOURS, false).bars.x, [0.9999, 1e-5]);
});

test("an axis is left out only where no step has two", () => {
  assert.ok(hasOneEach([candidates(0.9999, 1e-5), candidates(1)]));
  assert.ok(!hasOneEach([candidates(0.9999, 1e-5), candidates(0.6, 0.3)]));
});

test("no probability is rounded to certainty, as a sum of weights may be", () => {
  assert.equal(probabilityWords(1 - 1e-12), "over 99 %");
  assert.equal(percentWords(1 - 1e-12), "100 %");
  assert.equal(probabilityWords(1), "100 %");
  assert.equal(probabilityWords(0.99999, 2), "over 99.99 %");
  assert.equal(probabilityWords(0.03125, 2), "3.12 %");
  assert.equal(probabilityWords(1e-9, 2), "under 0.01 %");
});
