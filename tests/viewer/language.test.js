import assert from "node:assert/strict";
import test from "node:test";
import { enumerated, say, saySentence, speak } from "../../transformer_viz/viewer/language.js";

test("a text is English until a page brings its words, and its places are filled in as text", () => {
  assert.equal(say("{a} of {b}, {missing}", { a: "$&{b}", b: 2 }), "$&{b} of 2, {missing}");
  speak({ "{a} of {b}": "{b} 之 {a}" });
  assert.equal(say("{a} of {b}", { a: 1, b: 2 }), "2 之 1");
  assert.equal(say("constructor"), "constructor");
  speak();
  assert.equal(say("{a} of {b}", { a: 1, b: 2 }), "1 of 2");
});

test("a sentence has its pieces where its language has them, and plain words that meet are one", () => {
  const fields = { token: ["code", "{share}"], share: "96 %", more: [["plain", " and "], ["strong", "b"]] };
  assert.deepEqual(saySentence("looks {share} at {token}{more}{missing}", fields), [
    ["plain", "looks 96 % at "], ["code", "{share}"], ["plain", " and "], ["strong", "b"], ["plain", "{missing}"],
  ]);
  speak({ "looks {share} at {token}": "看 {token}（{share}）", "{names}, {name}": "{names}、{name}" });
  assert.deepEqual(saySentence("looks {share} at {token}", fields), [["plain", "看 "], ["code", "{share}"], ["plain", "（96 %）"]]);
  assert.deepEqual([[], [["code", "a"]], ["b", ["code", "a"]]].map(enumerated), [[], [["code", "a"]], [["plain", "b、"], ["code", "a"]]]);
  speak();
});
