// @ts-check
// The viewer in a notebook's cell. Its focus is a value that the notebook's other cells read and set; numbers come by messages, a
// head when it is chosen, since a value is sent to every view of a cell and may be saved with the notebook.
import { partFrom, unzipped } from "./packed.js";
import { NumbersTable } from "./table.js";
import { Viewer } from "./viewer.js";

const PLOTLY_STYLES = "plotly.js-style-global";
const OWN_KEYS = "data-lm-suppress-shortcuts";
/** After so long without an answer it is said that none comes. */
const LATE_MS = 4000;

/**
 * What other cells know of a viewer's state.
 * @typedef {{kind: string, layer: number, head: number | "mean" | "max", step: number,
 *            cell: [number | null, number | null] | null}} Focus
 */

/** @param {import("./state.js").State} state @returns {Focus} */
export function focusFrom({ kind, layer, head, step, pin }) {
  return { kind, layer, head, step, cell: /** @type {any} */ (pin.length ? pin : null) };
}

/** @param {Focus} focus @returns {Partial<import("./state.js").State>} */
export function stateFrom({ cell, ...place }) {
  return { ...place, pin: cell ?? [] };
}

/** The Python that holds the run: it is asked by messages, and answers each with the number of its question. */
export class Kernel {
  /** @param {any} model as anywidget gives it */
  constructor(model) {
    this.model = model;
    this.asked = new Map();
    /** What each view does when another run is shown, and when answers are late or have come. */
    this.shows = new Set();
    this.waits = new Set();
    // Another browser may have the same notebook open, and hears all answers.
    this.name = Math.random().toString(36).slice(2);
    this.last = 0;
    /** @type {Promise<any> | null} */
    this.run = null;
    /** @type {Promise<any> | null} */
    this.first = null;
    model.on("msg:custom", (words, buffers) => this.hear(words, buffers));
  }

  ask(what, more = {}) {
    this.last += 1;
    const id = `${this.name} ${this.last}`;
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => this.wait(true), LATE_MS);
      this.asked.set(id, { resolve, reject, late });
      this.model.send({ ...more, ask: what, id });
    });
  }

  wait(isLate) {
    for (const wait of this.waits) wait(isLate);
  }

  hear({ id, error, run }, buffers) {
    if (run !== undefined) {
      this.run = this.#made(run, buffers);
      for (const show of this.shows) show();
    }
    const asked = this.asked.get(id);
    if (this.asked.delete(id)) {
      clearTimeout(asked.late);
      this.wait(false);
    }
    if (error) asked?.reject(new Error(error));
    else asked?.resolve(buffers);
  }

  /** The run that is shown, which all views of a cell share. */
  async newest() {
    if (!this.run) await (this.first ??= this.ask("run").finally(() => { this.first = null; }));
    return this.run;
  }

  // A run comes without the numbers of its heads.
  async #made(name, [packed]) {
    // Two views of a widget want the same head at the same time.
    const coming = new Map();
    const part = (kind, layer, head) => {
      const address = [kind, layer + 1, Number.isInteger(head) ? head + 1 : head].join(".");
      if (!coming.has(address)) {
        const numbers = this.ask("head", { run: name, head: address }).then((buffers) => partFrom(...buffers));
        coming.set(address, numbers.finally(() => coming.delete(address)));
      }
      return coming.get(address);
    };
    return { ...JSON.parse(new TextDecoder().decode(await unzipped(packed))), run: String(name), part };
  }
}

// plotly.js is fetched once for all cells of a page; of other cells, that have brought one already, theirs is taken. Where the first
// that asked gets no answer, since its Python is gone, the next asks too.
async function plotlyFrom(kernel) {
  if (window.Plotly) return;
  const first = window.transformerVizPlotly;
  if (!first) await (window.transformerVizPlotly = fetchPlotly(kernel));
  else await Promise.race([first, new Promise((go) => { setTimeout(go, LATE_MS); })]);
  if (!window.Plotly) await fetchPlotly(kernel);
}

async function fetchPlotly(kernel) {
  const [packed] = await kernel.ask("plotly"), element = document.createElement("script");
  element.textContent = new TextDecoder().decode(await unzipped(packed));
  document.head.append(element);
}

/**
 * What anywidget asks for once for each widget. A widget may be shown in several cells, each of which is given a model of its own;
 * that of `initialize` outlives them.
 * @param {string} html of widget.html
 */
export function shownInCells(html) {
  /** @type {Kernel} */
  let kernel;
  return {
    initialize: ({ model }) => { kernel = new Kernel(model); },
    render({ model, el }) {
      const view = new CellView(model, el, html, kernel);
      return () => view.end();
    },
  };
}

class CellView {
  constructor(model, el, html, kernel) {
    el.innerHTML = html;
    this.model = model;
    this.kernel = kernel;
    this.root = el.querySelector(".transformer-viz");
    this.table = new NumbersTable(this.part("maps"));
    this.viewer = new Viewer(this.root.querySelector(".viewer"), {
      heard: (state) => this.tell(state), drawn: (host) => this.drawn(host), keysIn: this.root, hasLink: false,
      share: () => this.root.offsetWidth / window.innerWidth,
    });
    this.show = () => this.arrived();
    this.moved = () => this.go();
    this.waited = (isLate) => { this.part("late").hidden = !isLate; };
    this.kernel.shows.add(this.show);
    this.kernel.waits.add(this.waited);
    model.on("change:focus", this.moved);
    this.listen();
    this.restyle();
    this.arrived();
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  listen() {
    const form = this.part("typed"), field = this.part("text"), most = this.model.get("longest");
    form.hidden = !most;
    field.maxLength = most;
    // Letters belong to the box and not to the notebook.
    form.addEventListener("keydown", (event) => event.stopPropagation());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.decode(field.value);
    });
    // JupyterLab and Jupyter Notebook leave the keys of an element alone that says so itself: of one around it they do not ask
    // before they take an arrow for their headings, or two d to delete the cell.
    this.root.addEventListener("focusin", ({ target }) => target.setAttribute(OWN_KEYS, "true"));
    // A notebook says in ways of its own whether it is dark; all of them change something here.
    this.looks = new MutationObserver(() => this.restyle());
    for (const one of [document.documentElement, document.body]) this.looks.observe(one, { attributes: true });
    this.sizes = new ResizeObserver(() => this.resized());
    this.sizes.observe(this.root);
  }

  // What somebody types is a text to be read, and never more.
  async decode(text) {
    this.say("");
    this.root.ariaBusy = "true";
    try {
      await this.kernel.ask("decode", { text });
    } catch (error) {
      this.say(error.message);
    }
    this.root.ariaBusy = null;
  }

  async arrived() {
    try {
      const run = await this.kernel.newest();
      if (this.hasEnded) return;
      const isOther = run !== this.run;
      this.run = run;
      if (isOther && document.activeElement !== this.part("text")) this.part("text").value = run.text;
      this.viewer.show(run, stateFrom(this.model.get("focus")));
      await plotlyFrom(this.kernel);
      if (this.hasEnded) return;
      this.lendStyles();
      this.viewer.draw();
    } catch (error) {
      this.say(error.message);
    }
  }

  go() {
    if (this.run) this.viewer.show(this.run, stateFrom(this.model.get("focus")));
  }

  tell(state) {
    this.model.set("focus", focusFrom(state));
    this.model.save_changes();
  }

  drawn(host) {
    this.table.host = host;
    this.table.show();
  }

  say(words) {
    this.part("told").textContent = words;
    this.part("told").hidden = !words;
  }

  // Where a notebook keeps each cell's styles apart, plotly.js, which puts its own into the page, would stand without them.
  lendStyles() {
    const around = this.root.getRootNode(), styles = document.getElementById(PLOTLY_STYLES);
    if (around === document || !(styles instanceof HTMLStyleElement) || this.root.querySelector("style")) return;
    const text = [...styles.sheet?.cssRules ?? []].map(({ cssText }) => cssText).join("\n");
    this.root.append(Object.assign(document.createElement("style"), { textContent: text }));
  }

  restyle() {
    // A notebook may put a cell into its page after it was made: until then nothing is behind it.
    if (!this.root.isConnected) return;
    const dark = isDark(this.root.parentElement);
    if (dark === this.dark) return;
    this.dark = dark;
    this.root.classList.toggle("dark", dark);
    this.viewer.restyle({ dark });
  }

  // A cell is made before it is seen, and becomes wider.
  resized() {
    this.restyle();
    const { offsetWidth: width } = this.root;
    if (!width || width === this.width || !this.run) return;
    this.width = width;
    this.viewer.draw();
  }

  end() {
    this.hasEnded = true;
    this.kernel.shows.delete(this.show);
    this.kernel.waits.delete(this.waited);
    this.model.off("change:focus", this.moved);
    this.looks.disconnect();
    this.sizes.disconnect();
    this.viewer.end();
  }
}

/** Whether what a cell stands on is dark: the first colour behind it. @param {Element | null} element */
export function isDark(element) {
  for (let one = element; one; one = one.parentElement ?? one.getRootNode().host) {
    const [red, green, blue, alpha] = bytesOfColour(getComputedStyle(one).backgroundColor);
    // A shade over a paper, as of the cell in focus, leaves it light or dark.
    if (alpha > 127) return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
  }
  return false;
}

// Painted, since styles have a dozen ways to write a colour.
function bytesOfColour(colour) {
  const sheet = /** @type {OffscreenCanvasRenderingContext2D} */ (new OffscreenCanvas(1, 1).getContext("2d"));
  sheet.fillStyle = colour;
  sheet.fillRect(0, 0, 1, 1);
  return sheet.getImageData(0, 0, 1, 1).data;
}
