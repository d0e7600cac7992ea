import assert from "node:assert/strict";
import test from "node:test";
import { Waiting } from "../../transformer_viz/viewer/waiting.js";

const place = (name) => ({ name, isConnected: true });

// A component with one place that is shown, as the picture of a page.
function component() {
  const called = [], waiting = new Waiting((given) => called.push(given));
  let shown = null;
  const comes = (root, given, isOld = false) => {
    if (!waiting.waits(shown, root, given, isOld)) shown = { root, given };
    return shown.root.name;
  };
  const goes = (root) => {
    root.isConnected = false;
    const wasShown = shown?.root === root;
    if (wasShown) shown = null;
    waiting.gone(root, wasShown);
  };
  return { called, comes, goes };
}

test("what is drawn once more before it is taken away does not take the place of what stays", () => {
  const { called, comes, goes } = component(), stays = place("stays"), old = place("old");
  assert.equal(comes(stays, "new words"), "stays");
  assert.equal(comes(old, "old words", true), "stays");
  goes(old);
  assert.deepEqual(called, []);
});

test("the one that stays takes over, whichever was shown", () => {
  for (const isOld of [false, true]) {
    const { called, comes, goes } = component(), first = place("first"), second = place("second");
    comes(first, "of the first");
    assert.equal(comes(second, "of the second", isOld), isOld ? "first" : "second");
    goes(isOld ? first : second);
    assert.deepEqual(called, [isOld ? "of the second" : "of the first"]);
  }
});

test("where the one before has gone, nothing is called again", () => {
  const { called, comes, goes } = component(), first = place("first"), second = place("second");
  comes(first, 1);
  goes(first);
  assert.equal(comes(second, 2), "second");
  goes(second);
  assert.deepEqual(called, []);
});
