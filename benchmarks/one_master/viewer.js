// The component of the trial: a text box, kinds, steps, cells to pin, and the numbers of a run.

import { Master } from "./master.js";
import { keep } from "./address.js";
import { Report } from "./report.js";

const DEFAULTS = { text: "hello", kind: "cross", step: 0, pin: "" };
// It survives a component that is mounted anew: another page was open, or Streamlit made its element again.
const master = new Master(["step", "pin"]);
const report = new Report(() => master.told());
let shown = null, draft = null;

export function viewer({ parentElement, data, setStateValue }) {
  const root = parentElement.querySelector(".viewer");
  const isNew = shown?.root !== root;
  if (isNew) {
    build(root);
    report.begin((state) => setStateValue("at", state));
  }
  if (master.take(data) || isNew) load(master.run);
  draw();
  if (data.heard < master.n) report.soon();
}

export function address({ data }) {
  keep("boxes", Object.fromEntries(
    Object.entries(data.words).filter(([name, word]) => word !== { model: "one", tab: "first" }[name])));
}

function build(root) {
  shown = { root };
  const box = Object.assign(document.createElement("input"), { className: "text" });
  box.addEventListener("input", () => { draft = box.value; });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    draft = null;
    // Step and pin are of the run before: the address names them with no other text.
    press({ text: box.value, step: 0, pin: "" });
    report.now();
  });
  const button = (name, value) => {
    const one = Object.assign(document.createElement("button"), { className: `${name}-${value}`, textContent: `${name} ${value}` });
    one.addEventListener("click", () => press({ [name]: value }));
    return one;
  };
  const steps = [...Array(6).keys()].map((n) => button("step", n));
  const kinds = ["encoder", "decoder", "cross"].map((kind) => button("kind", kind));
  const pins = ["1,1", "2,3", "4,5"].map((pin) => button("pin", pin));
  const said = Object.assign(document.createElement("pre"), { className: "said" });
  root.replaceChildren(box, ...steps, ...kinds, ...pins, said);
  root.addEventListener("keydown", (event) => {
    if (event.key === "ArrowRight" && event.target !== box) press({ step: Math.min(5, master.state.step + 1) });
  });
}

function press(change) {
  if (change.pin && change.pin === master.state.pin) change = { pin: "" };
  master.press(change);
  draw();
  report.soon();
}

async function load(run) {
  const answer = await fetch(new URL(`proof/numbers/${run}`, document.baseURI));
  const bytes = await answer.text();
  if (master.run === run) shown.numbers = bytes.slice(0, 12);
  draw();
}

function draw() {
  const { text, ...others } = master.state;
  const box = shown.root.querySelector(".text");
  box.value = draft ?? text;
  const said = { ...others, text, run: master.run, numbers: shown.numbers };
  shown.root.querySelector(".said").textContent = JSON.stringify(said);
  const words = Object.entries(master.state).filter(([name, value]) => value !== DEFAULTS[name]);
  keep("picture", Object.fromEntries(words.map(([name, value]) => [name, String(value)])));
}
