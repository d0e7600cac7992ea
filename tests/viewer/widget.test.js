import assert from "node:assert/strict";
import test from "node:test";
import { deflateRawSync, gzipSync } from "node:zlib";
import { focusFrom, isDark, Kernel, stateFrom } from "../../transformer_viz/viewer/widget.js";

// What anywidget gives a cell, with Python behind it: `asked` are the questions, `answer` is what Python says.
function notebook() {
  const asked = [], hears = {};
  const model = { send: (words) => asked.push(words), on: (name, act) => { hears[name] = act; } };
  return { asked, model, answer: (words, ...buffers) => hears["msg:custom"](words, buffers) };
}

// As they come over a wire: bytes somewhere in a larger buffer.
const view = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const packedRun = (run) => view(gzipSync(JSON.stringify(run)));
const deflated = (bytes) => view(deflateRawSync(bytes));

test("what other cells read and set is the state, with a pin as a cell", () => {
  const focus = { kind: "cross", layer: 1, head: "mean", step: 3, cell: [2, null] };
  const state = { ...stateFrom(focus), run: "0", lines: "auto", measure: "weights" };
  assert.deepEqual(state.pin, [2, null]);
  assert.deepEqual(focusFrom(state), focus);
  assert.equal(focusFrom({ ...state, pin: [] }).cell, null);
  assert.deepEqual(stateFrom({ ...focus, cell: null }).pin, []);
});

test("two views of a cell ask for its run once", async () => {
  const { asked, model, answer } = notebook(), kernel = new Kernel(model);
  const [first, second] = [kernel.newest(), kernel.newest()];
  assert.deepEqual(asked.map(({ ask }) => ask), ["run"]);
  answer({ id: asked[0].id, run: 5 }, packedRun({ title: "ab → ba" }));
  const run = await first;
  assert.equal(run.title, "ab → ba");
  assert.equal(run.run, "5");
  for (const other of [second, kernel.newest()]) assert.equal(await other, run);
  assert.equal(asked.length, 1);
});

test("a head is asked for by its address, and comes as bytes", async () => {
  const { asked, model, answer } = notebook(), kernel = new Kernel(model);
  answer({ run: 7 }, packedRun({}));
  const run = await kernel.newest(), numbers = Float32Array.of(0.25, 0.5, 0.125);
  const bytes = new Uint8Array(numbers.buffer), planes = new Uint8Array(12);
  for (let byte = 0; byte < 4; byte += 1) for (let i = 0; i < 3; i += 1) planes[byte * 3 + i] = bytes[i * 4 + byte];
  for (const [head, name] of [[3, "cross.2.4"], ["mean", "cross.2.mean"]]) {
    const part = run.part("cross", 1, head), { id, ...words } = asked.at(-1);
    assert.deepEqual(words, { ask: "head", run: 7, head: name });
    answer({ id }, deflated(planes), deflated(Buffer.from('[[["plain","a"]]]')));
    const { weights, sentences, reasons } = await part;
    assert.deepEqual(weights.values, numbers);
    assert.deepEqual(sentences, [[["plain", "a"]]]);
    assert.equal(reasons, null);
  }
});

test("an answer to somebody else changes nothing, and a refusal is said", async () => {
  const { asked, model, answer } = notebook(), kernel = new Kernel(model);
  let isDone = false;
  const decoded = kernel.ask("decode", { text: "x" }).finally(() => { isDone = true; });
  answer({ id: "another 1" });
  await Promise.resolve();
  assert.equal(isDone, false);
  answer({ id: asked[0].id, error: "x cannot be read" });
  await assert.rejects(decoded, /x cannot be read/);
});

test("a run that Python shows reaches every view, and the last one stays", async () => {
  const { model, answer } = notebook(), kernel = new Kernel(model), shown = [];
  for (const name of ["a", "b"]) kernel.shows.add(async () => shown.push([name, (await kernel.newest()).title]));
  answer({ run: 1 }, packedRun({ title: "one" }));
  answer({ run: 2 }, packedRun({ title: "two" }));
  assert.equal((await kernel.newest()).title, "two");
  await new Promise((go) => setImmediate(go));
  assert.deepEqual(shown.slice(-2), [["a", "two"], ["b", "two"]]);
});

test("it is said that an answer is late, and no longer once it has come", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { asked, model, answer } = notebook(), kernel = new Kernel(model), told = [];
  kernel.waits.add((isLate) => told.push(isLate));
  const soon = kernel.ask("run"), late = kernel.ask("head");
  answer({ id: asked[0].id });
  await soon;
  context.mock.timers.tick(60_000);
  assert.deepEqual(told, [false, true]);
  answer({ id: "another 1" });
  assert.deepEqual(told, [false, true]);
  answer({ id: asked[1].id });
  await late;
  assert.deepEqual(told, [false, true, false]);
});

test("a cell is dark where the first colour behind it is, also through a shadow", () => {
  const looks = new Map();
  globalThis.getComputedStyle = (one) => ({ backgroundColor: looks.get(one) });
  globalThis.OffscreenCanvas = class {
    getContext() {
      return { fillRect() {}, getImageData() { return { data: this.fillStyle }; } };
    }
  };
  const page = { parentElement: null, getRootNode: () => ({}) };
  const host = { parentElement: page }, cell = { parentElement: null, getRootNode: () => ({ host }) };
  looks.set(page, [255, 255, 255, 255]).set(host, [20, 24, 30, 255]).set(cell, [0, 0, 0, 0]);
  assert.equal(isDark(cell), true);
  for (const shade of [[0, 0, 0, 0], [0, 0, 0, 20]]) {
    looks.set(host, shade);
    assert.equal(isDark(cell), false);
  }
});
