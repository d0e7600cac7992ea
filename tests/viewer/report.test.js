import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { Report } from "../../transformer_viz/viewer/report.js";

/** @type {Record<string, ((event: any) => void)[]>} */
const hears = {};

// A browser at Explore, and a report of a state whose number is `n`.
function browser() {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  for (const name of Object.keys(hears)) delete hears[name];
  const place = { origin: "http://here", pathname: "/" };
  Object.assign(globalThis, {
    addEventListener: (name, act) => (hears[name] ??= []).push(act),
    location: place,
    document: { baseURI: "http://here/" },
    requestAnimationFrame: (draw) => setTimeout(draw, 16),
  });
  const state = { n: 0 }, told = [], report = new Report(() => ({ ...state }));
  const root = { isConnected: true };
  // The link of the first page has an empty address, which the browser takes for that of the page one is on.
  const link = (to) => ({ tagName: "A", href: to || `http://here${place.pathname}`, target: "", ariaCurrent: null, getAttribute: () => to });
  const press = (href) => hears.click.forEach((act) => act({ composedPath: () => [link(href)] }));
  return { place, state, told, report, root, press, begin: (heard = 0, on = root) => report.begin((one) => told.push(one.n), on, heard) };
}

// A frame, and what was to come after it.
function drawn() {
  mock.timers.tick(16);
  mock.timers.tick(1);
}

test("of presses that follow each other fast the first is told once it is drawn, and the last one once it rests", () => {
  const { state, told, report, begin } = browser();
  begin();
  for (state.n = 1; state.n < 9; state.n += 1) {
    report.soon();
    drawn();
    mock.timers.tick(300);
  }
  report.soon();
  assert.deepEqual(told, [1]);
  mock.timers.tick(400);
  assert.deepEqual(told, [1, 9]);
  report.now();
  assert.deepEqual(told, [1, 9], "what was told is not told again");
  state.n = 10;
  report.soon();
  assert.deepEqual(told, [1, 9], "its frame is not drawn");
  drawn();
  assert.deepEqual(told, [1, 9, 10], "a press that comes alone");
});

test("what is pressed elsewhere on the page finds the newest state told", () => {
  const { state, told, report, begin } = browser();
  begin();
  for (state.n = 1; state.n < 3; state.n += 1) report.soon();
  hears.pointerdown.forEach((act) => act({ composedPath: () => [] }));
  assert.deepEqual(told, [3], "also before its frame is drawn");
  drawn();
  assert.deepEqual(told, [3]);
});

test("between two pages nothing is told, and nothing is lost", () => {
  const { place, state, told, report, root, press, begin } = browser();
  begin();
  press("http://here/masks");
  state.n = 1;
  report.now();
  place.pathname = "/masks";
  root.isConnected = false;
  mock.timers.tick(1000);
  assert.deepEqual(told, [], "another page is here");
  press("");
  place.pathname = "/";
  begin(0, { isConnected: true });
  report.now();
  assert.deepEqual(told, [1]);
});

test("a component that is there before its address is told of later", () => {
  const { place, state, told, report, press, begin } = browser();
  place.pathname = "/masks";
  press("");
  begin();
  state.n = 1;
  report.now();
  assert.deepEqual(told, []);
  place.pathname = "/";
  mock.timers.tick(60);
  assert.deepEqual(told, [1], "nobody has to press again");
});

test("a component that is drawn anew while another page is on its way tells nothing", () => {
  const { state, told, report, press, begin } = browser();
  begin();
  press("http://here/masks");
  begin();
  state.n = 1;
  report.now();
  mock.timers.tick(1000);
  assert.deepEqual(told, []);
});

test("what one told that has gone is told again, where the server never heard of it", () => {
  const { state, told, report, root, begin } = browser();
  begin();
  state.n = 2;
  report.now();
  root.isConnected = false;
  begin(1, { isConnected: true });
  report.now();
  assert.deepEqual(told, [2, 2]);
  begin(2, { isConnected: true });
  report.now();
  assert.deepEqual(told, [2, 2]);
});

test("after Back the same page counts once a run of it is here", () => {
  const { state, told, report, begin } = browser();
  begin();
  hears.popstate.forEach((act) => act({}));
  state.n = 1;
  report.now();
  mock.timers.tick(100);
  assert.deepEqual(told, []);
  report.arrived();
  mock.timers.tick(100);
  assert.deepEqual(told, [1]);
});

test("another session, which has heard of nothing, is told all of it", () => {
  const { state, told, report, begin } = browser();
  begin();
  state.n = 3;
  report.now();
  assert.equal(report.hears(3), false);
  report.now();
  assert.deepEqual(told, [3]);
  assert.equal(report.hears(0), true);
  mock.timers.tick(1000);
  assert.deepEqual(told, [3, 3]);
  assert.equal(report.hears(3), false);
});
