// @ts-check
// The exported page: a viewer of one run, whose state is in the address, and below it the masks and the numbers of a row.
import { drawChart } from "./charts.js";
import { say, speak } from "./language.js";
import { maskFigure } from "./masks.js";
import { REST_MS } from "./player.js";
import { Viewer } from "./viewer.js";

export const part = (name) => document.querySelector(`[data-part="${name}"]`);

export class Page {
  constructor(data) {
    this.data = data;
    speak(data.words);
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.theme = data.theme;
    this.viewer = new Viewer(document.querySelector(".viewer"), { heard: (state, why) => this.heard(why), came: () => this.drawOpened() });
    document.documentElement.classList.toggle("large", data.large);
    this.restyle();
    const { kind, layer, head, step } = data.focus, lines = data.aligner ? "all" : "auto";
    this.take({ ...data, run: "this" }, { kind, layer: data.kinds[kind].numbers[layer], head, step, lines });
    this.goByAddress();
    this.listen();
  }

  // The run that is shown.
  take(run, start) {
    this.run = run;
    part("model").textContent = run.about ?? run.made[0] ?? "";
    part("best").textContent = run.best ?? "";
    part("best").hidden = !run.best;
    this.viewer.show(run, start);
    // Another run of the same text may be made in another way.
    this.titled = undefined;
    this.sayTitle();
    this.drawOpened();
  }

  // Where a run unfolds, its title would tell what is to come.
  sayTitle() {
    const { opens, title: whole, output, made, version } = this.run, isWhole = this.viewer.state.step >= output.length - 1;
    const title = isWhole ? whole : opens ?? whole;
    if (this.titled === title) return;
    this.titled = title;
    part("title").textContent = title;
    document.title = [title, made[0]].filter(Boolean).join(" · ");
    part("made").textContent = [title, ...made, `Transformer Viz ${version}`].join(" · ");
  }

  get isDark() {
    return this.theme === "auto" ? this.dark.matches : this.theme === "dark";
  }

  listen() {
    part("theme").addEventListener("click", () => {
      this.theme = this.isDark ? "light" : "dark";
      this.restyle();
    });
    this.dark.addEventListener("change", () => this.restyle());
    for (const name of ["masks", "numbers"]) part(name).addEventListener("toggle", () => this.drawOpened());
    this.known = location.hash;
    window.addEventListener("hashchange", () => {
      this.known = location.hash;
      this.goByAddress();
    });
  }

  restyle() {
    document.documentElement.dataset.theme = this.isDark ? "dark" : "light";
    this.viewer.restyle({ dark: this.isDark, large: this.data.large });
    if (this.run) this.drawOpened();
  }

  // The address is written once a press has rested: that takes 5 ms.
  heard(_why) {
    this.sayTitle();
    this.drawOpened();
    clearTimeout(this.rests);
    this.rests = setTimeout(() => this.writeAddress(), REST_MS);
  }

  // ---- the sections below

  drawOpened() {
    if (part("masks").open && window.Plotly) this.drawMasks();
    if (part("numbers").open) this.listNumbers();
  }

  drawMasks() {
    const { kinds, layerPlace, state: { run, layer, head } } = this.viewer;
    const looks = JSON.stringify([run, layer, head, this.isDark]);
    if (this.masksShown === looks) return;
    this.masksShown = looks;
    const room = part("masks").querySelector(".masks");
    if (!room.children.length) room.append(...Object.keys(kinds).map(() => element("div", "mask")));
    Object.values(kinds).forEach((kind, place) => {
      const one = Number.isInteger(head) ? head : 0;
      const own = { layer: Math.min(layerPlace, kind.layers - 1), head: Math.min(one, kind.heads - 1) };
      drawChart(room.children[place], maskFigure(kind, own, this.viewer.darkened));
    });
  }

  // The weights of this step's row as text, for eyes and screen readers.
  listNumbers() {
    const { kinds, layerPlace: layer, state: { kind: name, head, step } } = this.viewer;
    const kind = kinds[name], row = Math.min(step, kind.rows - 1);
    // Of a large run they are unpacked first.
    if (!kind.has(layer, head)) return;
    const weights = kind.weightsOf(layer, head), reasons = kind.reasonsOf(layer, head);
    const list = element("dl");
    kind.linked.keys.forEach((label, column) => {
      const line = element("div"), i = row * kind.columns + column;
      line.append(element("dt", "", label), element("dd", "", reasons[i] ? say("masked") : exact(weights[i])));
      list.append(line);
    });
    const called = kind.names[layer][kind.headNumber(head)];
    const words = say("{kind}, {head}, row {row}: its weight on each key", { kind: kind.title, head: called, row: kind.linked.rows[row] });
    part("numbers").querySelector(".numbers").replaceChildren(element("p", "", words), list);
  }

  // ---- the address: what the page shows, counted from 1, where it has one

  // An address that was changed from outside and has not been read yet stays.
  writeAddress() {
    if (location.protocol === "about:" || location.hash !== this.known) return;
    history.replaceState(null, "", `#${new URLSearchParams(this.address())}`);
    this.known = location.hash;
  }

  address() {
    const { kind, layer, head, step } = this.viewer.state;
    return { kind, layer: layer + 1, head: Number.isInteger(head) ? head + 1 : head, step: step + 1 };
  }

  goByAddress() {
    const start = stateOf(location.hash, this.viewer.kinds, this.run.output.length);
    if (start) this.viewer.show(this.run, start);
    this.drawOpened();
  }
}

// What an address says of a run's kind, layer, head and step; null where it names no kind.
export function stateOf(hash, kinds, steps) {
  const words = new URLSearchParams(hash.slice(1)), name = words.get("kind") ?? "";
  if (!Object.hasOwn(kinds, name)) return null;
  const { numbers, heads } = kinds[name];
  const number = (key, most) => {
    const said = /^\d{1,4}$/.test(words.get(key) ?? "") ? Number(words.get(key)) : 0;
    return said >= 1 && said <= most ? said - 1 : null;
  };
  const layer = number("layer", 9999), head = words.get("head") ?? "", step = number("step", steps);
  return {
    kind: name,
    layer: numbers.includes(layer) ? layer : numbers[0],
    head: ["mean", "max"].includes(head) ? head : number("head", heads) ?? 0,
    ...(step === null ? {} : { step }),
  };
}

export function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Six places; a small weight keeps its digits and is never rounded to nothing.
function exact(weight) {
  return weight > 0 && weight < 1e-4 ? weight.toExponential(3) : weight.toFixed(6);
}

// Draws a page as soon as plotly.js is there, or says that it is missing.
export async function start(page) {
  await (window.plotlyReady ?? Promise.resolve()).catch(() => {});
  if (window.Plotly) {
    page.viewer.draw();
    page.drawOpened();
    return;
  }
  part("missing").hidden = false;
  part("missing").textContent =
    say("plotly.js is not where this page looks for it, so the maps cannot be drawn. Everything else works.");
}
