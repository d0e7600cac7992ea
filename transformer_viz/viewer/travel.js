// @ts-check
// How a look travels. Over a step that is drawn already, in its end state, the tokens that are looked at swell, bands grow from them
// to the token that is written, their letters travel along, and what arrives falls into the row of the map.
import { gapOf, pathBetween } from "./lines.js";
import { svg } from "./marks.js";

/** Of source and output together: of more a step is drawn as it is. */
export const MOST_TOKENS = 100;
const LEAST_LOOK = 0.02;
const WIDEST_BAND_PX = 9;
const DOT_PX = 11;
/** Milliseconds from the press on: begin and end of each part. */
const TIMES = { swell: [0, 180], band: [120, 480], dot: [120, 480], meet: [420, 620], fall: [500, 700] };

/** @typedef {{from: Element, to: Element, weight: number}} Look a token that is written, one that it looks at, and how much */

export class Travel {
  /** @param {HTMLElement} strips */
  constructor(strips) {
    this.strips = strips;
    this.picture = svg("svg", { class: "travel", "aria-hidden": "true" });
    strips.append(this.picture);
    /** @type {Animation[]} */
    this.running = [];
    this.wanted = 0;
  }

  /**
   * Shows the looks of a step once the step is drawn. A later step takes its place.
   * @param {Look[]} looks
   * @param {(key: number) => DOMRect | null} cellOf where a column of the row is in the window
   * @param {{isBack?: boolean, isShort?: boolean}} [how] backwards; or the bands alone, as while a key is held down
   */
  go(looks, cellOf, { isBack = false, isShort = false } = {}) {
    this.end();
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const seen = looks.map((look, key) => ({ ...look, key })).filter(({ from, to, weight }) => from && to && weight >= LEAST_LOOK);
    // The step is drawn first, in a frame of its own: where its tokens are is asked in the next one.
    const begin = () => this.#begin(seen, cellOf, isBack, isShort);
    if (seen.length) this.wanted = requestAnimationFrame(() => { this.wanted = requestAnimationFrame(begin); });
  }

  end() {
    cancelAnimationFrame(this.wanted);
    for (const one of this.running) one.cancel();
    this.running = [];
    this.picture.replaceChildren();
  }

  get isOn() {
    return this.picture.children.length > 0;
  }

  #begin(looks, cellOf, isBack, isShort) {
    const origin = this.strips.getBoundingClientRect(), most = Math.max(...looks.map(({ weight }) => weight));
    const gap = gapOf(this.strips);
    // A path leads from the written token to what it looks at; the look goes the other way.
    const drawn = looks.map(({ from, to, weight, key }) => {
      const [here, there] = [from, to].map((one) => one.getBoundingClientRect());
      return { to, weight, text: to.textContent, cell: isShort ? null : cellOf(key), here, d: pathBetween(here, there, origin, gap) };
    });
    const play = (element, frames, [from, until], fill = "backwards") => {
      const timing = { duration: until - from, delay: isBack ? 700 - until : from, fill, direction: isBack ? "reverse" : "normal" };
      this.running.push(element.animate(frames, { easing: "ease-in-out", ...timing }));
    };
    for (const { to, weight, text, cell, here, d } of drawn) {
      const share = weight / most, band = svg("path", { class: "band", d, "stroke-width": 1 + WIDEST_BAND_PX * weight, pathLength: 1 });
      this.picture.append(band);
      play(band, [{ strokeDashoffset: -1, opacity: 0.85 }, { strokeDashoffset: 0, opacity: 0.85 }], TIMES.band, "both");
      play(band, [{ opacity: 0.85 }, { opacity: 0 }], TIMES.fall, "forwards");
      if (isShort) continue;
      play(to, [{ transform: "none" }, { transform: `scale(${1 + 0.06 * share})` }, { transform: "none" }], TIMES.swell);
      const dot = dotOf(text, weight);
      dot.style.offsetPath = `path("${d}")`;
      this.picture.append(dot);
      play(dot, [{ offsetDistance: "100%", opacity: 1 }, { offsetDistance: "0%", opacity: 1 }], TIMES.dot, "backwards");
      play(dot, [{ opacity: 0 }, { opacity: 0 }], [TIMES.dot[1], TIMES.fall[1]], "forwards");
      if (cell) this.#fall(here, cell, weight, origin, play);
    }
    if (!isShort) play(looks[0].from, [{ transform: "none" }, { transform: "scale(1.12)" }, { transform: "none" }], TIMES.meet);
    const last = this.running.at(-1);
    Promise.allSettled(this.running.map(({ finished }) => finished)).then(() => this.running.at(-1) === last && this.end());
  }

  // From the token that is written into its cell of the map, which has its colour already.
  #fall(here, cell, weight, origin, play) {
    const [x, y] = [here.left + here.width / 2 - origin.left, here.bottom - origin.top];
    const [toX, toY] = [cell.left - origin.left, cell.top - origin.top];
    const size = { width: cell.width, height: cell.height }, drop = svg("rect", { class: "drop", x: toX, y: toY, ...size });
    this.picture.append(drop);
    const from = `translate(${x - toX - cell.width / 2}px, ${y - toY}px) scale(0.3)`;
    drop.style.transformOrigin = `${toX + cell.width / 2}px ${toY + cell.height / 2}px`;
    drop.style.opacity = "0";
    play(drop, [{ transform: from, opacity: 0.3 + 0.6 * weight }, { transform: "none", opacity: 0.3 + 0.6 * weight }], TIMES.fall, "none");
  }
}

// A letter in a circle, as large as it is looked at.
function dotOf(text, weight) {
  const dot = svg("g", { class: "dot" }), radius = DOT_PX * (0.55 + 0.45 * weight);
  const word = Object.assign(svg("text", { "text-anchor": "middle", "dominant-baseline": "central", "font-size": radius * 1.25 }), {
    textContent: [...text].length > 2 ? "" : text,
  });
  dot.append(svg("circle", { r: radius }), word);
  return dot;
}
