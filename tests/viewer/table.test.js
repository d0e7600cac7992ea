import assert from "node:assert/strict";
import test from "node:test";
import { plainText } from "../../transformer_viz/viewer/sentence.js";
import { tablesOf } from "../../transformer_viz/viewer/table.js";

test("a label is what its token was", () => {
  assert.equal(plainText("<b>1·&lt;img onerror=x&gt;</b>"), "1·<img onerror=x>");
  assert.equal(plainText("&amp;lt; &#36;x&#36;<br>4·10<sup>−9</sup>"), "&lt; $x$, 4·10−9");
});

test("a long table says what it leaves out", () => {
  const n = 1234, x = [...Array(n).keys()], trace = { type: "scatter", name: "loss", x, y: x };
  const data = [{ type: "heatmap", z: x.map((i) => [i]) }, trace, { ...trace, x: [1], y: [2] }];
  assert.deepEqual(tablesOf({ layout: {}, data }).map(({ caption, lines }) => [caption, lines.length]),
    [["the first 200 of 1,234 lines", 200], ["loss: the first 200 of 1,234 lines", 200], ["loss", 1]]);
});

test("a map's cell says its number, or why it has none; what is hidden says nothing", () => {
  const weights = { type: "heatmap", z: [Float32Array.of(0.25, NaN), Float32Array.of(NaN, NaN)] };
  const masked = { type: "heatmap", z: [[NaN, 1], [NaN, NaN]], hovertemplate: "query:<br><b>it comes later</b>" };
  const axis = (names) => ({ tickvals: [0, 1], ticktext: names });
  const [table] = tablesOf({ data: [weights, masked], layout: { xaxis: axis(["a", "&lt;b&gt;"]), yaxis: axis(["r", "s"]) } });
  assert.deepEqual(table.head, ["", "a", "<b>"]);
  assert.deepEqual(table.lines, [["r", "0.25", "it comes later"], ["s", "", ""]]);
});
