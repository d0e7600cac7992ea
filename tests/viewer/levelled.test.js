import assert from "node:assert/strict";
import { test } from "node:test";
import { levelled } from "../../transformer_viz/viewer/levelled.js";

const size = (height, t, b) => ({ layout: { height, margin: { l: 31, t, b }, xaxis: { ticktext: ["1·a", "2·b&lt;c"], tickfont: { size: 13 } }, yaxis: { domain: [0, 1] } } });
const runOf = (masked) => ({
  masks: { cross: 395 },
  kinds: {
    cross: {
      title: "cross-attention", picture: { masked, wide: size(372, 8, 29), narrow: size(301, 8, 29) },
      mask: { layout: { height: 330, title: { text: "", font: { size: 13 } }, margin: { l: 5, t: 84, b: 8 }, xaxis: { title: "key" } } },
    },
  },
});

for (const masked of [{}, { 1: {}, 2: {} }, { 1: {}, 2: {}, 3: {}, 4: {}, 5: {} }]) {
  test(`the rows of a mask with ${Object.keys(masked).length} reasons and of its weights are level`, () => {
    const { picture, mask } = levelled(runOf(masked)).kinds.cross;
    for (const { layout } of [picture.wide, picture.narrow]) {
      assert.equal(layout.height, mask.layout.height);
      assert.deepEqual([layout.margin.t, layout.margin.b], [mask.layout.margin.t, mask.layout.margin.b]);
      assert.deepEqual(layout.xaxis, mask.layout.xaxis);
      assert.equal(layout.xaxis.tickangle, -90);
    }
    assert.deepEqual([picture.wide.layout.margin.l, mask.layout.margin.l], [31, 5]);
    assert.equal(picture.wide.layout.title.text, "cross-attention: weights");
  });
}

test("longer labels get more room", () => {
  const long = runOf({});
  long.kinds.cross.picture.wide.layout.xaxis.ticktext = ["1·internationalisation"];
  const bottom = (run) => levelled(run).kinds.cross.mask.layout.margin.b;
  assert.ok(bottom(long) > bottom(runOf({})) + 80);
});
