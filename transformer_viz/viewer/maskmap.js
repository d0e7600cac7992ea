// @ts-check
// The masks in force beside the weights of a viewer, one of them in sight: each cell has the colour of its reason. A press on a cell,
// or on the label of a row or a column, may be told.
import { areas, cellAt } from "./cells.js";
import { say } from "./language.js";
import { LinkedChart, standing } from "./linked.js";
import { mark, rectangle } from "./marks.js";
import { maskFigure } from "./masks.js";
import { REST_MS } from "./player.js";
import { outline } from "./secondmap.js";

export class MaskMap {
  /** @type {Record<string, LinkedChart>} */
  #charts = {};
  /** @type {Record<string, string>} */
  #told = {};
  /** @type {any} */
  #run = null;
  /** @type {any} */
  #rests;

  /**
   * @param {HTMLElement} room
   * @param {any} viewer whose head's mask is shown
   * @param {{before?: any, pressed?: (cell: any) => void}} [on] `before` is a viewer with whose masks these are compared, `pressed`
   *   is told the row and column (null where a label was pressed), and the kind, layer and head that were seen
   */
  constructor(room, viewer, { before, pressed } = {}) {
    this.room = room;
    this.viewer = viewer;
    this.before = before;
    this.pressed = pressed;
    room.classList.toggle("clickable", Boolean(pressed));
  }

  get charts() {
    return Object.values(this.#charts);
  }

  // The run has `masks`, the height of each kind's picture.
  show(run) {
    this.#run = run;
    const names = Object.keys(this.viewer.kinds);
    this.#charts = standing(this.#charts, names, this.room, (name) => this.#chart(name));
    this.draw();
  }

  // Also where the viewer shows another place: what is drawn already is only marked.
  draw() {
    clearTimeout(this.#rests);
    if (!window.Plotly || !this.#run) return;
    const { kind: now } = this.viewer.state;
    for (const [name, { host }] of Object.entries(this.#charts)) {
      if (name === now) host.dataset.part = "mask-now";
      else delete host.dataset.part;
      host.ariaHidden = name === now ? null : "true";
    }
    this.#drawKind(now);
    this.#rests = setTimeout(() => this.#drawAtRest(), REST_MS);
  }

  end() {
    clearTimeout(this.#rests);
    for (const { host } of this.charts) window.Plotly?.purge(host);
  }

  #chart(name) {
    const host = Object.assign(document.createElement("div"), { className: "chart" });
    host.setAttribute("role", "figure");
    if (this.pressed) host.addEventListener("click", (event) => this.#press(event, name));
    return new LinkedChart(host, () => this.#mark(name));
  }

  // It is no pin: the picture hears nothing of it.
  #press(event, name) {
    const cell = areas(this.#charts[name].host).map((area) => cellAt(area, event)).find(Boolean);
    event.stopPropagation();
    if (cell) this.pressed?.({ ...cell, kind: name, ...this.#seen(name) });
  }

  // Of several heads together the first stands for all.
  #seen(name) {
    const { kind, layer, head } = this.viewer.state, { numbers } = this.viewer.kinds[name];
    return kind === name ? { layer, head: Number.isInteger(head) ? head : 0 } : { layer: numbers[0], head: 0 };
  }

  // A sketch of it where only its cells are others than Plotly has drawn.
  #drawKind(name, isAtRest = false) {
    const chart = this.#charts[name], figure = this.#figure(name);
    if (!chart || !figure) return;
    const looks = JSON.stringify([this.#run.version, figure.layout.height, this.viewer.darkened]), isHere = chart.has(looks);
    const isSame = isHere && this.#told[name] === figure.told;
    this.#told[name] = figure.told;
    if (isSame && !(isAtRest && chart.isLate)) return void this.#mark(name);
    if (isHere && !isAtRest) {
      chart.paint(figure);
      return void this.#mark(name);
    }
    chart.host.setAttribute("aria-label", this.#words(name));
    chart.host.style.minHeight = `${figure.layout.height}px`;
    void chart.draw(figure, { run: this.#run.run, kind: name }, looks);
  }

  #words(name) {
    const { title: kind } = this.viewer.kinds[name];
    if (this.pressed) return say("The mask of the {kind}, each cell by its reason; the field below edits it by text", { kind });
    return say("The mask of the {kind}, each cell by its reason", { kind });
  }

  // One after the other, as soon as nobody presses.
  #drawAtRest() {
    const late = Object.entries(this.#charts).find(([name, chart]) => (!chart.drawn || chart.isLate) && this.#figure(name));
    if (!late) return;
    this.#drawKind(late[0], true);
    this.#rests = setTimeout(() => this.#drawAtRest());
  }

  // None until the numbers of the head are there. `told` is another where cells have other reasons, or other frames.
  #figure(name) {
    const kind = this.viewer.kinds[name];
    if (!kind) return null;
    const { layer, head } = this.#seen(name), place = kind.numbers.indexOf(layer);
    if (!kind.allReasons && !kind.has(place, head)) return null;
    const { data, layout } = maskFigure(kind, { layer: place, head }, this.viewer.darkened), [cells, ...named] = data;
    const apart = this.#apart(kind, name, place, head), line = { width: 2, color: this.viewer.accent };
    const frames = { type: "scatter", mode: "lines", line, hoverinfo: "skip", showlegend: false, ...outline(apart, kind.columns, kind.rows) };
    const told = `${toldBy(kind.reasonsOf(place, head))} ${toldBy(apart)}`;
    return { data: [cells, frames, ...named], layout: { ...layout, height: this.#run.masks?.[name] ?? layout.height }, told };
  }

  // Each cell that the other run masks and this one does not, or the other way round.
  #apart(kind, name, layer, head) {
    const other = this.before?.kinds[name], now = kind.reasonsOf(layer, head);
    if (!other || (!other.allReasons && !other.has(layer, head))) return new Uint8Array(now.length);
    const then = other.reasonsOf(layer, head);
    return Uint8Array.from(now, (code, i) => {
      const row = Math.floor(i / kind.columns), column = i % kind.columns;
      return Number(row < other.rows && column < other.columns && code > 0 !== then[row * other.columns + column] > 0);
    });
  }

  // The row of the step.
  #mark(name) {
    const { host, places: { xy: place } } = this.#charts[name], { step } = this.viewer.state, { rows, columns } = this.viewer.kinds[name];
    if (!place) return;
    const isRow = this.viewer.state.kind === name && this.viewer.isStepped && step < rows;
    const box = [place.right(-0.5), place.down(step - 0.5), place.right(columns - 0.5), place.down(step + 0.5)];
    mark(host, "row", isRow ? rectangle(...box) : "", { stroke: this.viewer.accent, "stroke-width": 2 });
  }
}

// Another head has another picture only where its reasons are others.
function toldBy(reasons) {
  return reasons.reduce((hash, code) => (Math.imul(hash, 31) + code) | 0, 7);
}
