import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { keep } from "../../transformer_viz/viewer/address.js";
import { stateOf } from "../../transformer_viz/viewer/page.js";

const kinds = { encoder: { numbers: [0, 1], heads: 4 }, cross: { numbers: [2, 7], heads: 3 } };
const read = (hash) => stateOf(`#${hash}`, kinds, 6);

test("an address counts from 1, and calls a layer by its own number", () => {
  assert.deepEqual(read("kind=cross&layer=8&head=3&step=6"), { kind: "cross", layer: 7, head: 2, step: 5 });
  assert.deepEqual(read("kind=encoder&layer=2&head=mean"), { kind: "encoder", layer: 1, head: "mean" });
});

test("what a run has not is passed over, and without a kind all of it", () => {
  assert.deepEqual(read("kind=cross&layer=1&head=9&step=7"), { kind: "cross", layer: 2, head: 0 });
  assert.deepEqual(read("kind=cross&layer=-1&head=%00&step=1e1"), { kind: "cross", layer: 2, head: 0 });
  assert.equal(read("kind=__proto__&layer=1"), null);
  assert.equal(read("layer=1&step=2"), null);
  assert.equal(stateOf("", kinds, 6), null);
});

test("the address follows a press once it is drawn, or as soon as another begins, and never that of another page", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const written = [], hears = {}, place = { pathname: "/", search: "", hash: "" };
  Object.assign(globalThis, {
    window: globalThis, location: place, document: { get baseURI() { return `http://here${place.pathname}`; } }, addEventListener: (name, act) => { hears[name] = act; },
    history: { state: 1, replaceState: (_state, _title, to) => written.push(to) },
  });
  place.search = "?step=2&device=cpu&banned=a&banned=b";
  keep("", "picture", { step: 2 });
  mock.timers.tick(60);
  assert.deepEqual(written, [], "what is opened by a link loses nothing of it before the page has spoken");
  place.search = "";
  keep("", "boxes", { device: "cpu", banned: ["a", "b"] });
  assert.deepEqual(written, []);
  mock.timers.tick(60);
  assert.deepEqual(written, ["/?step=2&device=cpu&banned=a&banned=b"]);
  place.search = "?step=2&device=cpu&banned=a&banned=b";
  keep("", "picture", { step: 3 });
  hears.pointerdown();
  assert.equal(written.length, 2);
  mock.timers.tick(60);
  assert.equal(written.length, 2);
  keep("", "picture", { step: 4 });
  Object.assign(place, { pathname: "/masks", search: "" });
  mock.timers.tick(60);
  assert.equal(written.length, 2);
  keep("", "picture", { step: 5 });
  mock.timers.tick(60);
  assert.equal(written.length, 2, "what is still to be seen of another page says nothing of this one");
  keep("masks", "boxes", { edits: "cross:1-2" });
  mock.timers.tick(60);
  assert.equal(written[2], "/masks?edits=cross%3A1-2");
  Object.assign(place, { pathname: "/", search: "?text=noon" });
  keep("masks", "boxes", {});
  mock.timers.tick(60);
  assert.equal(written.length, 3, "where one goes Back to, the address says what is to be shown");
});
