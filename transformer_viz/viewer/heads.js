// @ts-check
// A table of heads: of each kind a grid of tiles, a head each, whose colours are one number, and boxes that say which head is in focus.
// It is to its page what a viewer is.
import { choose, fill, hear } from "./boxes.js";
import { hearTiles } from "./cells.js";
import { say } from "./language.js";
import { LinkedChart, standing } from "./linked.js";
import { mark, rectangle } from "./marks.js";
import { tilesInFocus } from "./smallmaps.js";

const OUTLINE_PX = 2.5;

export class Heads {
  /** @type {any} */
  #run = null;
  /** @type {{kind: string, layer: number, head: number}} */
  #place = { kind: "", layer: 0, head: 0 };
  /** @type {Record<string, LinkedChart>} */
  #charts = {};

  /**
   * @param {HTMLElement} root
   * @param {Record<string, any>} on as of `Viewer`
   */
  constructor(root, on) {
    this.root = root;
    this.on = on;
    const box = (name) => root.querySelector(`[data-box="${name}"]`);
    this.boxes = { kind: box("kind"), layer: box("layer"), head: box("head") };
    hear(this.boxes, (name, value) => this.set({ [name]: value }, name));
  }

  /**
   * @param {any} run `kinds`, each with its `title`, `numbers` (of its layers), `heads`, and where it has any `figure`, with its
   *   `words`; and `accent`, the colour of what is in focus. All is of the page's theme
   * @param {Record<string, any>} [start]
   */
  show(run, start = {}) {
    const isOther = run !== this.#run;
    this.#run = run;
    this.#go({ ...this.#place, ...start });
    if (isOther) this.draw();
  }

  set(change, why) {
    const before = JSON.stringify(this.#place);
    this.#go({ ...this.#place, ...change });
    if (before !== JSON.stringify(this.#place)) this.on.heard?.(this.state, why);
  }

  get state() {
    return { run: this.#run?.run ?? "", ...this.#place };
  }

  get isAwaited() {
    return false;
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  // Its figures come in the page's looks.
  restyle() {}

  end() {
    for (const { host } of Object.values(this.#charts)) window.Plotly?.purge(host);
  }

  // The place nearest to this one that there is.
  #go({ kind: wanted, layer, head }) {
    const { kinds } = this.#run, kind = Object.hasOwn(kinds, wanted) ? wanted : Object.keys(kinds)[0], { numbers, heads } = kinds[kind];
    const place = Number.isInteger(head) ? Math.max(0, Math.min(heads - 1, head)) : 0;
    this.#place = { kind, layer: numbers.includes(layer) ? layer : numbers[0], head: place };
    fill(this.boxes.kind, Object.entries(kinds).map(([name, { title }]) => [name, title]));
    fill(this.boxes.layer, numbers.map((number) => [number, say("layer {layer}", { layer: number + 1 })]));
    fill(this.boxes.head, Array.from({ length: heads }, (_, n) => [n, say("head {head}", { head: n + 1 })]));
    for (const [name, value] of Object.entries(this.#place)) choose(this.boxes[name], String(value));
    for (const [name, chart] of Object.entries(this.#charts)) this.#mark(name, chart);
  }

  draw() {
    if (!window.Plotly || !this.#run) return;
    const named = Object.entries(this.#run.kinds).filter(([, { figure }]) => figure), names = named.map(([name]) => name);
    this.#charts = standing(this.#charts, names, this.part("mosaics"), (name) => this.#chart(name));
    for (const [name, { figure, words }] of named) {
      const chart = this.#charts[name], { run, version } = this.#run;
      chart.host.setAttribute("aria-label", words);
      void chart.draw(figure, { run, kind: name }, version);
    }
  }

  #chart(name) {
    const host = Object.assign(document.createElement("div"), { className: "chart" });
    host.setAttribute("role", "figure");
    host.dataset.kind = name;
    hearTiles(host, ([layer, head]) => this.set({ kind: name, layer, head }, "tile"));
    return new LinkedChart(host, (chart) => this.#mark(name, chart));
  }

  #mark(name, { host, wanted, places: { xy: place } }) {
    if (!place || !wanted) return;
    const { heads, tiles } = wanted.layout.meta, isOn = tilesInFocus(wanted.layout, this.#place).map((is) => is && name === this.#place.kind);
    const boxes = tiles.flatMap((_, i) => {
      const column = i % heads, row = Math.floor(i / heads);
      return isOn[i] ? [rectangle(place.right(column - 0.5), place.down(row - 0.5), place.right(column + 0.5), place.down(row + 0.5))] : [];
    });
    mark(host, "tile", boxes.join(""), { stroke: this.#run.accent, "stroke-width": OUTLINE_PX });
  }
}
