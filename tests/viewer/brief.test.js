import assert from "node:assert/strict";
import test from "node:test";
import { briefWords, briefWordsOfEncoder } from "../../transformer_viz/viewer/brief.js";

const said = (weights, head = 1) => {
  const looks = Object.entries(weights).map(([name, weight]) => ({ text: name[0], weight }));
  const { rests, plays } = briefWords({ looks, written: "t", head });
  return [rests, plays].map((sentence) => sentence.map(([, text]) => text).join(""));
};

test("a token that stands there once is named alone", () => {
  assert.deepEqual(said({ a1: 0.1, t1: 0.6, b1: 0.3 }), ["Head 2 looks at t (60 %), and the model writes t.", "looks at t · writes t"]);
  assert.equal(said({ a1: 0.1, t1: 0.6 }, "mean")[0], "The heads look at t (60 %), and the model writes t.");
});

test("of several that are alike it says which, and names the second one too from half of the first on", () => {
  const words = "Head 2 looks at the first t (52 %), nearly as much at the second (47 %), and the model writes t.";
  assert.deepEqual(said({ t1: 0.52, a1: 0.01, t2: 0.47 }), [words, "looks at the first t · writes t"]);
  assert.equal(said({ t1: 0.31, a1: 0.04, t2: 0.65 })[0], "Head 2 looks at the second t (65 %), and the model writes t.");
  assert.equal(said({ t1: 0.3, a1: 0.1, t2: 0.6 })[0], "Head 2 looks at the second t (60 %), nearly as much at the first (30 %), and the model writes t.");
  // A second token that is another is no doubt which one is meant.
  assert.equal(said({ t1: 0.5, a1: 0.45, t2: 0.05 })[0], "Head 2 looks at the first t (50 %), and the model writes t.");
  assert.equal(said({ t1: 0, t2: 0, t3: 0, t4: 0, t5: 1 })[0], "Head 2 looks at number 5 t (100 %), and the model writes t.");
});

test("of the encoder it says that it was there before the first step", () => {
  const { rests, plays } = briefWordsOfEncoder("t"), words = (sentence) => sentence.map(([, text]) => text).join("");
  assert.equal(words(rests), "The encoder read the whole source first; now the model writes t.");
  assert.equal(words(plays), "writes t");
});
