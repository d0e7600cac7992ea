// @ts-check
// Two runs beside each other: two viewers that follow each other, and the difference of the head in focus; where there is room for
// it, the mask of A too, whose cells one may press. It is to its page what a viewer is.
import { recoloured } from "./colours.js";
import { differenceFigure } from "./difference.js";
import { LinkedChart } from "./linked.js";
import { mark, rectangle } from "./marks.js";
import { MaskMap } from "./maskmap.js";
import { REST_MS } from "./player.js";
import { Viewer } from "./viewer.js";

export const ONE_COLUMN_PX = 900;
/** Of the window that each map has. */
const SHARE = 0.32;

export class Pair {
  /** @type {any} */
  #run = null;
  #step = 0;
  #isLed = false;
  #looks = { dark: false, large: false };
  /** @type {any} */
  #rests;

  /**
   * @param {HTMLElement} root
   * @param {Record<string, any>} on as of `Viewer`
   */
  constructor(root, on) {
    this.on = on;
    const side = (name) => root.querySelector(`[data-side="${name}"] .viewer`), share = () => (window.innerWidth < ONE_COLUMN_PX ? 1 : SHARE);
    const came = () => {
      this.#draw();
      on.came?.();
    };
    const others = () => this.masks?.charts ?? [];
    this.a = new Viewer(side("A"), { ...on, came, share, others, hasWindow: false, heard: (state, why) => this.#heardA(state, why) });
    this.b = new Viewer(side("B"), { came, share, hasWindow: false, heard: (state, why) => this.#heardB(state, why) });
    const host = root.querySelector('[data-part="difference"]');
    host.setAttribute("role", "figure");
    this.chart = new LinkedChart(host, () => this.#mark());
    const room = root.querySelector('[data-part="mask"]');
    this.masks = room ? new MaskMap(room, this.a, { before: this.b, pressed: (cell) => on.pressedCell?.(cell) }) : null;
  }

  /**
   * @param {any} run that of A, with `b`, that of B, and `difference`, by kind
   * @param {Record<string, any>} [start]
   */
  show(run, start = {}) {
    this.#run = run;
    if (start.step !== undefined) this.#step = Math.max(0, Math.min(start.step, this.#lastStep));
    this.a.show(run, start);
    this.#follow();
    this.masks?.show(run);
  }

  // Of both, since one may have written more than the other.
  get state() {
    return { ...this.a.state, step: this.#step };
  }

  // Whether numbers of what is shown are on their way.
  get isAwaited() {
    return this.a.isAwaited || this.b.isAwaited;
  }

  part(name) {
    return this.a.part(name);
  }

  restyle(looks) {
    this.#looks = { ...this.#looks, ...looks };
    for (const viewer of [this.a, this.b]) viewer.restyle(looks);
    this.#draw();
  }

  draw() {
    for (const viewer of [this.a, this.b]) viewer.draw();
    this.#draw();
  }

  end() {
    clearTimeout(this.#rests);
    for (const viewer of [this.a, this.b]) viewer.end();
    this.masks?.end();
    window.Plotly?.purge(this.chart.host);
  }

  get #lastStep() {
    return Math.max(this.#run.output.length, this.#run.b.output.length, 1) - 1;
  }

  #heardA({ step }, why) {
    if (!this.#isLed && ["step", "play"].includes(why)) this.#step = step;
    if (!this.#isLed) this.#follow();
    this.#draw();
    this.on.heard?.(this.state, why);
  }

  // A is the master of both: what was pressed at B is as if it had been pressed there.
  #heardB({ step, pin, lines }, why) {
    if (["step", "play"].includes(why)) this.#step = step;
    this.#isLed = true;
    this.a.set({ step, lines, pin: this.#across(pin, 1) }, why);
    this.#isLed = false;
    this.#draw();
    // A may have no such step, and then nothing is another there.
    this.on.heard?.(this.state, why);
  }

  #follow() {
    const { kind, layer, head, pin, lines } = this.a.state, { numbers, heads } = this.#run.b.kinds[kind];
    this.b.show(this.#run.b, {
      kind, lines, step: this.#step, pin: this.#across(pin, 0),
      layer: numbers.includes(layer) ? layer : numbers.at(-1),
      head: Number.isInteger(head) ? Math.min(head, heads - 1) : head,
    });
    this.#draw();
  }

  // A pin of one side (0 is A) as the other has it; none where that has no such row or column.
  #across(pin, side) {
    const { pairs } = this.#run.difference.kinds[this.a.state.kind];
    const there = pin.map((place, i) => (place === null ? null : pairs[i].find((pair) => pair[side] === place)?.[1 - side] ?? -1));
    return there.includes(-1) ? [] : there;
  }

  // ---- the difference

  #draw() {
    clearTimeout(this.#rests);
    if (!window.Plotly || !this.#run) return;
    this.masks?.draw();
    const figure = this.#figure();
    if (!figure) return;
    if (!this.chart.has(this.#looksOf())) return void this.#drawChart(figure);
    this.chart.paint(figure);
    this.#mark();
    this.#rests = setTimeout(() => this.#drawChart(figure), REST_MS);
  }

  async #drawChart(figure) {
    const { run } = this.#run, { kind } = this.a.state;
    this.chart.host.setAttribute("aria-label", this.#run.difference.words[kind]);
    await this.chart.draw(figure, { run, kind }, this.#looksOf());
  }

  get #isNarrow() {
    return window.innerWidth < ONE_COLUMN_PX;
  }

  #looksOf() {
    return JSON.stringify([this.#run.run, this.#run.version, this.a.state.kind, this.#looks.dark, this.#isNarrow]);
  }

  // None until the numbers of both heads are there.
  #figure() {
    const { kind } = this.a.state, parts = this.#run.difference.kinds[kind], sides = [this.a, this.b].map(headOf);
    if (!sides.every(Boolean)) return null;
    const colours = this.#looks.dark ? this.#run.difference.dark : {}, { wide, narrow, pairs, ...others } = parts;
    const layout = recoloured(this.#isNarrow ? narrow : wide, colours);
    return differenceFigure({ ...recoloured(others, colours), pairs }, layout, sides[0], sides[1]);
  }

  // The cell that differs most, and the row of the step.
  #mark() {
    const { wanted, places: { xy: place }, host } = this.chart;
    if (!wanted || !place) return;
    const box = (left, top, right, bottom) => rectangle(place.right(left), place.down(top), place.right(right), place.down(bottom));
    const { farthest, layout: { font } } = wanted, { pairs: [rows, columns] } = this.#run.difference.kinds[this.a.state.kind];
    const most = farthest ? box(farthest.column - 0.5, farthest.row - 0.5, farthest.column + 0.5, farthest.row + 0.5) : "";
    mark(host, "ring", most, { stroke: font.color, "stroke-width": 2 });
    const row = this.a.isStepped ? rows.findIndex(([inA, inB]) => (inA ?? inB) === this.#step) : -1;
    mark(host, "row", row < 0 ? "" : box(-0.5, row - 0.5, columns.length - 0.5, row + 0.5), { stroke: this.a.accent, "stroke-width": 2 });
  }
}

// The numbers of the head that a viewer shows, or null where they have not come.
function headOf(viewer) {
  const { kind: name, head } = viewer.state, kind = viewer.kinds[name], layer = viewer.layerPlace;
  if (!kind.has(layer, head)) return null;
  return { weights: kind.weightsOf(layer, head), reasons: kind.reasonsOf(layer, head), columns: kind.columns };
}
