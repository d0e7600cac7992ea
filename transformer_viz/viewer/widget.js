// @ts-check
// The viewer in a notebook's cell. Its focus is a value that the notebook's other cells read and set; numbers come by messages, a
// head when it is chosen, since a value is sent to every view of a cell and may be saved with the notebook.
import { partFrom, unzipped } from "./packed.js";
import { NumbersTable } from "./table.js";
import { Viewer } from "./viewer.js";

const PLOTLY_STYLES = "plotly.js-style-global";

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
    this.shows = new Set();
    // Another browser may have the same notebook open, and hears all answers.
    this.name = Math.random().toString(36).slice(2);
    this.last = 0;
    /** @type {Promise<any> | null} */
    this.run = null;
    model.on("msg:custom", (words, buffers) => this.hear(words, buffers));
  }

  ask(what, more = {}) {
    this.last += 1;
    const id = `${this.name} ${this.last}`;
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve, reject });
      this.model.send({ ...more, ask: what, id });
    });
  }

  hear({ id, error, run }, buffers) {
    if (run !== undefined) {
      this.run = this.#made(run, buffers);
      for (const show of this.shows) show();
    }
    const asked = this.asked.get(id);
    this.asked.delete(id);
    if (error) asked?.reject(new Error(error));
    else asked?.resolve(buffers);
  }

  /** The run that is shown, which all views of a cell share. */
  async newest() {
    if (!this.run) await this.ask("run");
    return this.run;
  }

  // A run comes without the numbers of its heads.
  async #made(name, [packed]) {
    const part = async (kind, layer, head) => {
      const address = [kind, layer + 1, Number.isInteger(head) ? head + 1 : head].join(".");
      return partFrom(...await this.ask("head", { run: name, head: address }));
    };
    return { ...JSON.parse(new TextDecoder().decode(await unzipped(packed))), run: String(name), part };
  }
}

/** @type {WeakMap<object, Kernel>} */
const KERNELS = new WeakMap();

function kernelOf(model) {
  if (!KERNELS.has(model)) KERNELS.set(model, new Kernel(model));
  return /** @type {Kernel} */ (KERNELS.get(model));
}

/** @type {Promise<void> | null} */
let plotly = null;

// plotly.js is fetched once for all cells of a page; of other cells, that have brought one already, theirs is taken.
function plotlyFrom(kernel) {
  if (window.Plotly) return Promise.resolve();
  window.transformerVizPlotly ??= plotly ??= kernel.ask("plotly").then(async ([packed]) => {
    const element = document.createElement("script");
    element.textContent = new TextDecoder().decode(await unzipped(packed));
    document.head.append(element);
  });
  return window.transformerVizPlotly;
}

/**
 * Shows a run in a cell.
 * @param {any} model as anywidget gives it
 * @param {HTMLElement} el the cell
 * @param {string} html of widget.html
 * @returns {() => void} ends it
 */
export function showInCell(model, el, html) {
  const view = new CellView(model, el, html);
  return () => view.end();
}

class CellView {
  constructor(model, el, html) {
    el.innerHTML = html;
    this.model = model;
    this.kernel = kernelOf(model);
    this.root = el.querySelector(".transformer-viz");
    this.table = new NumbersTable(this.part("maps"));
    this.viewer = new Viewer(this.root.querySelector(".viewer"), {
      heard: (state) => this.tell(state), drawn: (host) => this.drawn(host), keysIn: this.root, hasLink: false,
      share: () => this.root.offsetWidth / window.innerWidth,
    });
    this.show = () => this.arrived();
    this.moved = () => this.go();
    this.kernel.shows.add(this.show);
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
    const dark = isDark(this.root.parentElement);
    if (dark === this.dark) return;
    this.dark = dark;
    this.root.classList.toggle("dark", dark);
    this.viewer.restyle({ dark });
  }

  // A cell is made before it is seen, and becomes wider.
  resized() {
    const { offsetWidth: width } = this.root;
    if (!width || width === this.width || !this.run) return;
    this.width = width;
    this.viewer.draw();
  }

  end() {
    this.hasEnded = true;
    this.kernel.shows.delete(this.show);
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
    if (alpha) return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
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
