// @ts-check
// A figure of the head in focus that only the server can make, as that of its scores, and the row of it in focus. Each is fetched
// once. It is to its page what a viewer is.
import { choose, fill, hear } from "./boxes.js";
import { areas, cellAt } from "./cells.js";
import { say } from "./language.js";
import { LinkedChart } from "./linked.js";
import { mark, rectangle } from "./marks.js";

const ROW_PX = 2.5;

export class OneHead {
  /** @type {any} */
  #run = null;
  /** @type {{kind: string, layer: number, head: number, row: number}} */
  #place = { kind: "", layer: 0, head: 0, row: 0 };
  /** Those that have come, and those that are on their way. @type {Map<string, any>} */
  #figures = new Map();
  #chart;

  /**
   * @param {HTMLElement} root
   * @param {Record<string, any>} on as of `Viewer`
   */
  constructor(root, on) {
    this.root = root;
    this.on = on;
    const box = (name) => root.querySelector(`[data-box="${name}"]`);
    this.boxes = { kind: box("kind"), layer: box("layer"), head: box("head"), row: box("row") };
    hear(this.boxes, (name, value) => this.set({ [name]: value }, name));
    const host = Object.assign(document.createElement("div"), { className: "chart" });
    host.setAttribute("role", "figure");
    host.dataset.part = "focus";
    host.addEventListener("click", (event) => {
      const cell = areas(host).map((area) => cellAt(area, event)).find(Boolean);
      if (cell && cell.query !== null) this.set({ row: cell.query }, "row");
    });
    this.part("maps").replaceChildren(host);
    this.#chart = new LinkedChart(host, () => this.#mark());
  }

  /**
   * @param {any} run `kinds`, each with its `title`, `numbers` (of its layers), `heads`, its `rows` in words, and `words` about its
   *   figures; `accent`, the colour of what is in focus; and `figure`, which gives that of a kind, layer and head
   * @param {Record<string, any>} [start]
   */
  show(run, start = {}) {
    const isOther = run !== this.#run;
    this.#run = run;
    if (isOther) this.#figures.clear();
    this.#go({ ...this.#place, ...start });
  }

  set(change, why) {
    const before = JSON.stringify(this.#place);
    this.#go({ ...this.#place, ...change });
    if (before !== JSON.stringify(this.#place)) this.on.heard?.(this.state, why);
  }

  get state() {
    return { run: this.#run?.run ?? "", ...this.#place };
  }

  // What the page does of a press would keep the server from sending it.
  get isAwaited() {
    return !this.#figures.get(this.#key)?.data;
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  // Its figures come in the page's looks.
  restyle() {}

  end() {
    window.Plotly?.purge(this.#chart.host);
  }

  get #key() {
    const { kind, layer, head } = this.#place;
    return `${kind} ${layer} ${head}`;
  }

  // The place nearest to this one that there is.
  #go({ kind: wanted, layer, head, row }) {
    const { kinds } = this.#run, kind = Object.hasOwn(kinds, wanted) ? wanted : Object.keys(kinds)[0], { numbers, heads, rows } = kinds[kind];
    const near = (n, most) => (Number.isInteger(n) ? Math.max(0, Math.min(most - 1, n)) : 0);
    this.#place = { kind, layer: numbers.includes(layer) ? layer : numbers[0], head: near(head, heads), row: near(row, rows.length) };
    fill(this.boxes.kind, Object.entries(kinds).map(([name, { title }]) => [name, title]));
    fill(this.boxes.layer, numbers.map((number) => [number, say("layer {layer}", { layer: number + 1 })]));
    fill(this.boxes.head, Array.from({ length: heads }, (_, n) => [n, say("head {head}", { head: n + 1 })]));
    fill(this.boxes.row, rows.map((words, n) => [n, words]));
    for (const [name, value] of Object.entries(this.#place)) choose(this.boxes[name], String(value));
    this.#chart.host.setAttribute("aria-label", kinds[kind].words);
    this.#ask();
    this.draw();
  }

  // By the time that it has come another may be in focus: it is kept for later.
  async #ask() {
    const run = this.#run, key = this.#key, { kind, layer, head } = this.#place;
    if (this.#figures.has(key)) return;
    this.#figures.set(key, {});
    const missing = this.part("missing");
    try {
      const figure = await run.figure(kind, layer, head);
      if (run !== this.#run) return;
      this.#figures.set(key, figure);
      missing.hidden = true;
      if (key !== this.#key) return;
      this.draw();
      this.on.came?.();
    } catch (error) {
      if (run !== this.#run) return;
      // The next press asks again.
      this.#figures.delete(key);
      missing.textContent = error.message;
      missing.hidden = key !== this.#key;
    }
  }

  /** Draws what is not there yet, as when plotly.js has come. */
  draw() {
    if (!window.Plotly || !this.#run) return;
    const figure = this.#figures.get(this.#key), { host } = this.#chart, isHere = Boolean(figure?.data);
    if (!isHere) host.setAttribute("aria-busy", "true");
    else if (this.#chart.has(`${this.#run.version} ${this.#key}`)) this.#shown();
    else void this.#draw(figure);
  }

  async #draw(figure) {
    const { run, version } = this.#run, looks = `${version} ${this.#key}`;
    await this.#chart.draw(figure, { run, kind: this.#place.kind }, looks);
    this.draw();
  }

  #shown() {
    this.#chart.host.removeAttribute("aria-busy");
    this.#mark();
    this.on.drawn?.(this.#chart.host);
  }

  // The row in focus, in each map.
  #mark() {
    const { row } = this.#place, around = ({ left, width, down }) => rectangle(left, down(row - 0.5), left + width, down(row + 0.5));
    const looks = { stroke: this.#run.accent, "stroke-width": ROW_PX };
    mark(this.#chart.host, "row", Object.values(this.#chart.places).map(around).join(""), looks);
  }
}
