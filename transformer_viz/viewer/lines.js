// @ts-check
// Attention as lines between the tokens of the strips, as wide as the weights: those of this step, or the strong ones of all so far.
import { later, say } from "./language.js";
import { change, svg } from "./marks.js";

const WIDEST_PX = 10;
/** From which width on word and answer stand above each other; see player.css. */
export const STAGE_PX = 640;
const LEAST_OF_ALL = 0.3;
const ROOM_PX = { width: 900, height: 960 };
/** What somebody chooses; unless somebody does, the viewer does. */
export const CHOICES = { step: later("lines of this step"), all: later("lines so far"), none: later("no lines") };

export class Lines {
  constructor(root) {
    this.root = root;
    this.chosen = "auto";
    this.strips = root.querySelector(".strips");
    this.picture = svg("svg", { class: "lines", "aria-hidden": "true" });
    this.strips.prepend(this.picture);
    // What the decoder reads first was not written.
    this.first = document.createElement("span");
    this.first.className = "token special first-read";
    root.querySelector('[data-part="output"]').before(this.first);
    // Whether the run has ended, and all lines of it are to be seen at once.
    this.hasEnded = false;
    this.box = document.createElement("select");
    this.box.className = "lines-switch";
    this.box.ariaLabel = say("Lines");
    this.box.title = say("Lines from the written token to what it looks at, as wide as the weights");
    this.box.replaceChildren(...Object.entries(CHOICES).map(([value, words]) => new Option(say(words), value)));
    root.querySelector('[data-part="slider"]').before(this.box);
  }

  // For a player whose steps are rows of a map.
  offer(linked) {
    this.box.hidden = !linked?.lines;
    this.isAligned = Boolean(linked?.aligner);
    this.first.textContent = linked?.first;
    // A prompt's first token stands there already.
    this.first.classList.toggle("read", linked?.kind === "decoder" && linked.read[0] === null && !linked.isPrompt);
    // What was chosen here is further than what Python heard of it.
    if (linked && this.heard !== linked.lines) this.choose((this.heard = linked.lines));
    else this.arrange();
  }

  // Which lines: unless somebody said so, those of the step where there is room for them without scrolling, and when a run has
  // ended, all of it.
  get shown() {
    if (!this.chosen || this.chosen === "none") return "none";
    if (this.chosen !== "auto") return this.chosen;
    // On a phone the stage of words stands upright.
    const isStage = this.root.classList.contains("staged") && (window.innerWidth >= STAGE_PX || this.gap === Infinity);
    if (!isStage && (window.innerWidth < ROOM_PX.width || window.innerHeight < ROOM_PX.height)) return "none";
    return this.isAligned || (isStage && this.hasEnded) ? "all" : "step";
  }

  get isOn() {
    return this.shown !== "none";
  }

  choose(chosen) {
    this.chosen = chosen;
    this.arrange();
  }

  arrange() {
    const { shown } = this;
    this.root.classList.toggle("with-lines", this.isOn);
    this.root.classList.toggle("all-lines", shown === "all");
    this.root.classList.toggle("ended", shown === "all" && this.hasEnded);
    this.box.value = shown;
  }

  clear() {
    this.picture.replaceChildren();
  }

  // The lines of these links, as paths. In a strip that scrolls some tokens are out of sight, and no line could be drawn to
  // them. Nothing may be changed between two of these questions: the browser would arrange the page anew for each.
  pathsOf(links) {
    if (!this.isOn || this.root.querySelector(".strip.long")) return [];
    const place = (cell) => cell.getBoundingClientRect();
    const origin = place(this.strips), gap = this.gap;
    const drawn = links.filter(({ from, to, weight }) => from && to && weight > 0);
    return drawn.map(({ from, to, ...link }) => ({ ...link, d: pathBetween(place(from), place(to), origin, gap) }));
  }

  get gap() {
    return gapOf(this.strips);
  }

  // A line has an element of its own for as long as there are as many, so that it can move. Those of many rows are thin.
  draw(paths, { moves, isPreview, isThin = false }) {
    while (this.picture.children.length > paths.length) this.picture.lastChild.remove();
    while (this.picture.children.length < paths.length) this.picture.append(svg("path", {}));
    this.picture.classList.toggle("moves", moves);
    this.picture.classList.toggle("preview", isPreview);
    paths.forEach(({ d, weight, key, isAside, crosses }, place) => {
      const line = this.picture.children[place];
      change(line, { d, "stroke-width": weight * WIDEST_PX * (isThin ? 0.5 : 1), "data-key": key });
      line.classList.toggle("aside", isAside);
      line.classList.toggle("crosses", Boolean(crosses));
    });
  }
}

/** The upper edge of what is between the strips; infinite where they stand beside each other. @param {Element} strips */
export function gapOf(strips) {
  const source = strips.querySelector('[data-part="source"]');
  return isUpright(source) ? Infinity : source.getBoundingClientRect().bottom;
}

/** Whether a strip goes down, as those of words do on a phone. @param {Element} strip */
const isUpright = (strip) => getComputedStyle(strip).flexDirection === "column";

/**
 * The strong looks of all rows so far: each key that has a good share of its row.
 * @param {{shape: number[], at: (query: number, key: number) => number, isMasked: (query: number, key: number) => boolean}} weights
 * @param {number} step the last row
 */
export function strongLooks({ shape: [rows, columns], at, isMasked }, step) {
  const links = [];
  for (let query = 0; query < Math.min(rows, step + 1); query += 1) {
    for (let key = 0; key < columns; key += 1) {
      const weight = at(query, key);
      if (weight >= LEAST_OF_ALL && !isMasked(query, key)) links.push({ query, key, weight });
    }
  }
  return links;
}

/**
 * Each link with whether another one crosses it.
 * @template {{query: number, key: number}} Link
 * @param {Link[]} links
 * @returns {(Link & {crosses: boolean})[]}
 */
export function withCrossings(links) {
  return links.map((link) => ({
    ...link, crosses: links.some((other) => (link.query - other.query) * (link.key - other.key) < 0),
  }));
}

// From token to token, or in a bow between two of the same strip; `gap` is the upper edge of what is between the strips, and
// infinite where they stand beside each other: then from side to side.
export function pathBetween(from, to, origin, gap) {
  if (gap === Infinity) {
    const [x1, x2] = [from.left - origin.left, to.right - origin.left], middle = (x1 + x2) / 2;
    const [y1, y2] = [from, to].map((box) => box.top + box.height / 2 - origin.top);
    if (from.left < to.right && to.left < from.right) {
      const side = Math.max(from.right, to.right) - origin.left, turn = side + Math.min(32, 12 + Math.abs(y2 - y1) / 6);
      return `M${from.right - origin.left} ${y1}C${turn} ${y1} ${turn} ${y2} ${to.right - origin.left} ${y2}`;
    }
    return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
  }
  const isWithin = Math.abs(from.top - to.top) < from.height, isAbove = from.top >= gap;
  const [x1, x2] = [from, to].map((box) => box.left + box.width / 2 - origin.left);
  const y1 = (isAbove ? from.top : from.bottom) - origin.top;
  if (isWithin) {
    const turn = y1 + (isAbove ? -1 : 1) * Math.min(48, 18 + Math.abs(x2 - x1) / 4);
    return `M${x1} ${y1}C${x1} ${turn} ${x2} ${turn} ${x2} ${y1}`;
  }
  const y2 = to.bottom - origin.top, middle = (y1 + y2) / 2;
  return `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`;
}
