import assert from "node:assert/strict";
import test from "node:test";
import { cellAt, hearTiles, inKind, isSame, tileAt, tilesOf } from "../../transformer_viz/viewer/cells.js";

// A map of 7 columns and 5 rows, 70 by 100 pixels, at (20, 10) on the screen.
const box = { left: 20, right: 90, top: 10, bottom: 110, width: 70, height: 100 };
const area = { box, x: ({ clientX }) => -0.5 + (clientX - 20) / 10, y: ({ clientY }) => -0.5 + (clientY - 10) / 20 };
const at = (clientX, clientY) => cellAt(area, { clientX, clientY });

test("a cell, a row by its label, a column by its label", () => {
  assert.deepEqual(at(26, 21), { query: 0, key: 0 });
  assert.deepEqual(at(89, 109), { query: 4, key: 6 });
  assert.deepEqual(at(10, 55), { query: 2, key: null });
  assert.deepEqual(at(55, 120), { query: null, key: 3 });
  assert.equal(at(-80, 55), null);
  assert.equal(at(95, 55), null);
  assert.equal(at(55, 5), null);
});

// Three tiles of 2 by 3 cells, two in a row.
const grid = { tiles: [[3, 0], [3, 1], [8, 0]], heads: 2, pitch_x: 4, pitch_y: 3, rows: 2, columns: 3, block: [1, 1] };

test("tiles stand in rows, in cells", () => {
  assert.deepEqual(tilesOf(grid).map(({ layer, head, x, y }) => [layer, head, x, y]), [[3, 0, 0, 0], [3, 1, 4, 0], [8, 0, 0, 3]]);
});

test("the tile that an event was on; none where a row is not full", () => {
  const area = { getBoundingClientRect: () => ({ left: 0, bottom: 60, width: 70, height: 60 }), dataset: { subplot: "xy" } };
  const layout = { meta: grid, xaxis: { range: [-0.5, 6.5] }, yaxis: { range: [4.5, -1.5] } };
  const chart = { layout, querySelectorAll: () => [area] };
  assert.deepEqual(tileAt(chart, { clientX: 5, clientY: 25 }), [3, 0]);
  assert.deepEqual(tileAt(chart, { clientX: 45, clientY: 25 }), [3, 1]);
  assert.deepEqual(tileAt(chart, { clientX: 5, clientY: 55 }), [8, 0]);
  assert.equal(tileAt(chart, { clientX: 45, clientY: 55 }), null);
});

test("a press is of the tile that was under the hand, also where others come before it is up", () => {
  const area = { getBoundingClientRect: () => ({ left: 0, bottom: 60, width: 70, height: 60 }), dataset: { subplot: "xy" } };
  const layout = { meta: grid, xaxis: { range: [-0.5, 6.5] }, yaxis: { range: [4.5, -1.5] } };
  const hears = {}, pressed = [], on = { clientX: 35, clientY: 25 };
  const host = { layout, querySelectorAll: () => [area], addEventListener: (name, heard) => { hears[name] = heard; } };
  hearTiles(host, (tile) => pressed.push(tile));
  hears.pointerdown(on);
  host.layout = { ...layout, meta: { ...grid, pitch_x: 3 } };
  hears.click(on);
  // A click without a hand, as of a screen reader, is of what is there.
  hears.click(on);
  assert.deepEqual(pressed, [[3, 0], [3, 1]]);
});

test("a place in another kind", () => {
  const cell = { kind: "cross", query: 2, key: 3 };
  assert.deepEqual(inKind(cell, "cross"), { query: 2, key: 3 });
  assert.deepEqual(inKind(cell, "decoder"), { query: 2, key: null });
  assert.deepEqual(inKind(cell, "encoder"), { query: null, key: 3 });
  assert.equal(inKind({ kind: "decoder", query: null, key: 1 }, "cross"), null);
  assert.equal(inKind({ kind: "decoder", query: 1, key: 1 }, "encoder"), null);
});

test("the same place, and the same candidate", () => {
  assert.ok(isSame({ kind: "cross", query: 1, key: null }, { kind: "cross", query: 1, key: null }));
  assert.ok(!isSame({ kind: "cross", query: 1, key: null }, { kind: "cross", query: 1, key: null, candidate: 2 }));
  assert.ok(!isSame(null, { kind: "cross", query: 1, key: null }));
});
