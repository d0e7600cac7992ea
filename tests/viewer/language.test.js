import assert from "node:assert/strict";
import test from "node:test";
import { say, speak } from "../../transformer_viz/viewer/language.js";

test("a text is English until a page brings its words, and its places are filled in as text", () => {
  assert.equal(say("{a} of {b}, {missing}", { a: "$&{b}", b: 2 }), "$&{b} of 2, {missing}");
  speak({ "{a} of {b}": "{b} 之 {a}" });
  assert.equal(say("{a} of {b}", { a: 1, b: 2 }), "2 之 1");
  assert.equal(say("constructor"), "constructor");
  speak();
  assert.equal(say("{a} of {b}", { a: 1, b: 2 }), "1 of 2");
});
