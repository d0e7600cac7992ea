// @ts-check
// A chart of a viewer: what it shows, a sketch of what it is about to show, and what is marked over it.
import { placesOn } from "./cells.js";
import { drawChart } from "./charts.js";
import { Sketch } from "./sketch.js";

export class LinkedChart {
  // `moved` is called when Plotly has drawn anew by itself, as after a zoom.
  constructor(host, moved) {
    this.host = host;
    this.moved = moved;
    this.drawn = null;
    /** @type {any} */
    this.seen = null;
    /** @type {any} */
    this.picture = null;
    this.looks = "";
    this.places = {};
    this.sketch = new Sketch(host);
    this.size = { width: 0, height: 0 };
    /** @type {{places: object, shown: unknown} | null} */
    this.marked = null;
    this.isLate = false;
    /** What it shows, as its owner calls it. */
    this.shown = "";
  }

  // Whether Plotly has drawn a figure that differs from what is wanted in its numbers alone.
  has(looks) {
    return Boolean(this.drawn) && this.looks === looks;
  }

  // What is wanted is seen at once, and drawn by Plotly later.
  paint(figure) {
    this.wanted = figure;
    this.isLate = true;
    this.sketch.show(figure, this.places, this.size, this.picture);
  }

  // `looks` are all that the figure depends on but its numbers. `picture` gives the figure with what is marked over it.
  async draw(figure, about, looks, picture = () => figure) {
    this.wanted = figure;
    this.looks = looks;
    if (this.drawn?.run !== about.run) this.drawn = null;
    const drawing = drawChart(this.host, figure, `${about.run} ${about.kind}`, picture);
    // It is on the screen, and can be pressed, before Plotly says that it is done.
    this.seen = about;
    if (!this.hears) this.host.on("plotly_afterplot", () => this.measure());
    this.hears = true;
    await drawing;
    this.picture = figure;
    if (figure !== this.wanted) return;
    this.drawn = about;
    // For who looks from outside: of which run the numbers are.
    this.host.dataset.run = about.run;
    this.isLate = false;
    this.sketch.hide();
    this.measure();
  }

  // Asked once for each drawing and not at each press: the browser would arrange the page for an answer.
  measure() {
    const { offsetWidth: width, offsetHeight: height } = this.host;
    this.size = { width, height };
    this.places = placesOn(this.host);
    this.moved(this);
  }
}

/**
 * A chart for each name, in this order in their room; those that are there already stay.
 * @param {Record<string, LinkedChart>} before
 * @param {string[]} names
 * @param {HTMLElement} room
 * @param {(name: string) => LinkedChart} make
 * @returns {Record<string, LinkedChart>}
 */
export function standing(before, names, room, make) {
  const charts = Object.fromEntries(names.map((name) => [name, before[name] ?? make(name)]));
  const hosts = Object.values(charts).map(({ host }) => host);
  if (hosts.length !== room.children.length || hosts.some((host, i) => host !== room.children[i])) room.replaceChildren(...hosts);
  return charts;
}
