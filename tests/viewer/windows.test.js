import assert from "node:assert/strict";
import { test } from "node:test";
import { isLong, partAt, foundIn, windowed } from "../../transformer_viz/viewer/windows.js";

test("a window has 48 tokens, the chosen one in the middle or as near as the text goes", () => {
  assert.deepEqual(partAt(512, 200), { from: 176, until: 224 });
  assert.deepEqual(partAt(512, 3), { from: 0, until: 48 });
  assert.deepEqual(partAt(512, 511), { from: 464, until: 512 });
  assert.deepEqual(partAt(31, 17), { from: 0, until: 31 });
});

test("a window stays while the token is well within it, and is never left by one", () => {
  let part = partAt(512, 100);
  const seen = new Set();
  for (let place = 100; place < 512; place += 1) {
    part = partAt(512, place, part);
    assert.ok(place >= part.from && place < part.until, `${place} in ${part.from} to ${part.until}`);
    seen.add(part.from);
  }
  assert.ok(seen.size < 30, `the window moved ${seen.size} times in 412 steps`);
  assert.equal(partAt(512, 190, { from: 176, until: 224 }).from, 176);
  assert.notEqual(partAt(512, 221, { from: 176, until: 224 }).from, 176);
  // One of another text.
  assert.deepEqual(partAt(120, 119, { from: 176, until: 224 }), { from: 72, until: 120 });
});

test("a map is cut to its window, and its cells keep their places", () => {
  const rows = 130, columns = 151, z = Array.from({ length: rows }, (_, row) => Float32Array.from({ length: columns }, (_, column) => 1000 * row + column));
  const axis = (n, isDown) => ({
    range: isDown ? [n - 0.5, -0.5] : [-0.5, n - 0.5], tickfont: { size: 13 }, tickvals: [...Array(n).keys()].filter((i) => i % 5 === 0),
    ticktext: [...Array(n).keys()].filter((i) => i % 5 === 0).map((i) => `t${i}`), labelalias: Object.fromEntries([...Array(n).keys()].filter((i) => i % 5).map((i) => [i, `t${i}`])),
  });
  const cover = { type: "heatmap", x0: 75, dx: 151, z: z.map((row) => [row[0]]) }, bars = { type: "bar", xaxis: "x2", yaxis: "y2", x: [1] };
  const figure = { data: [{ type: "heatmap", z }, cover, bars], layout: { xaxis: axis(columns), yaxis: axis(rows, true), xaxis2: { range: [0, 1] } }, marks: { row: 1 } };
  const part = { rows: partAt(rows, 60), columns: partAt(columns, 140) }, { data: [map, covered, last], layout, marks } = windowed(figure, part);
  assert.deepEqual([map.z.length, map.z[0].length, map.x0, map.y0], [48, 48, 103, 36]);
  assert.equal(map.z[7][11], 1000 * (map.y0 + 7) + map.x0 + 11);
  assert.deepEqual([covered.z.length, covered.x0, covered.y0, covered.z[2][0]], [48, 75, 36, 38000]);
  assert.equal(last, bars);
  assert.deepEqual(marks, { row: 1 });
  assert.deepEqual([layout.yaxis.range, layout.xaxis.range], [[83.5, 35.5], [102.5, 150.5]]);
  assert.deepEqual(layout.xaxis.ticktext, Array.from({ length: 48 }, (_, i) => `t${103 + i}`));
  assert.equal(layout.xaxis2, figure.layout.xaxis2);
  assert.equal(figure.data[0].z.length, rows);
});

test("a token is found by a part of it, whatever its letters, or by its number", () => {
  const tokens = ["The", " house", " is", " small", ".", " House", "<end>"];
  assert.deepEqual(foundIn(tokens, "house"), [1, 5]);
  assert.deepEqual(foundIn(tokens, "  "), []);
  assert.deepEqual(foundIn(tokens, "<END>"), [6]);
  assert.deepEqual(foundIn(tokens, "cat"), []);
  assert.deepEqual(foundIn(tokens, "#4"), [3]);
  assert.deepEqual([foundIn(tokens, "#0"), foundIn(tokens, "#8")], [[], []]);
});

test("only a long text has a window", () => {
  assert.deepEqual([isLong({ rows: 13, columns: 100 }), isLong({ rows: 101, columns: 5 }), isLong({ rows: 5, columns: 512 })], [false, true, true]);
});
