// @ts-check
// Attention as lines between the tokens of the strips, as wide as the weights.
import { svg } from "./marks.js";

const WIDEST_PX = 10;
const ROOM_PX = { width: 900, height: 960 };

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
    this.button = document.createElement("button");
    this.button.type = "button";
    this.button.className = "lines-switch";
    this.button.textContent = "Lines";
    this.button.title = "Lines from the written token to what it looks at, as wide as the weights";
    root.querySelector('[data-part="slider"]').before(this.button);
  }

  // For a player whose steps are rows of a map.
  offer(linked) {
    this.button.hidden = !linked || linked.lines === "none";
    this.first.textContent = linked?.first;
    for (const [name, isIt] of [["prompt", true], ["given", true], ["special", false]]) {
      this.first.classList.toggle(name, Boolean(linked?.isPrompt) === isIt);
    }
    this.first.classList.toggle("read", linked?.kind === "decoder" && linked.read[0] === null);
    // What was chosen here is further than what Python heard of it.
    if (linked && this.heard !== linked.lines) this.choose((this.heard = linked.lines));
  }

  // Unless somebody said so, they are where the window has room for them without scrolling.
  get isOn() {
    const hasRoom = window.innerWidth >= ROOM_PX.width && window.innerHeight >= ROOM_PX.height;
    return this.chosen === "on" || (this.chosen === "auto" && hasRoom);
  }

  choose(chosen) {
    this.chosen = chosen;
    this.root.classList.toggle("with-lines", this.isOn);
    this.button.setAttribute("aria-pressed", this.isOn);
  }

  clear() {
    this.picture.replaceChildren();
  }

  // The lines of these links, as paths. In a strip that scrolls some tokens are out of sight, and no line could be drawn to
  // them. Nothing may be changed between two of these questions: the browser would arrange the page anew for each.
  pathsOf(links) {
    if (!this.isOn || this.root.querySelector(".strip.long")) return [];
    const place = (cell) => cell.getBoundingClientRect();
    const origin = place(this.strips), gap = place(this.root.querySelector('[data-part="source"]')).bottom;
    const drawn = links.filter(({ from, to, weight }) => from && to && weight > 0);
    return drawn.map(({ from, to, ...link }) => ({ ...link, d: pathBetween(place(from), place(to), origin, gap) }));
  }

  // A line has an element of its own for as long as there are as many, so that it can move. Those of many rows are thin.
  draw(paths, { moves, isPreview, isThin = false }) {
    while (this.picture.children.length > paths.length) this.picture.lastChild.remove();
    while (this.picture.children.length < paths.length) this.picture.append(svg("path", {}));
    this.picture.classList.toggle("moves", moves);
    this.picture.classList.toggle("preview", isPreview);
    paths.forEach(({ d, weight, key, isAside }, place) => {
      const line = this.picture.children[place];
      line.setAttribute("d", d);
      line.setAttribute("stroke-width", weight * WIDEST_PX * (isThin ? 0.5 : 1));
      line.dataset.key = key;
      line.classList.toggle("aside", isAside);
    });
  }
}

// From token to token, or in a bow between two of the same strip; `gap` is the upper edge of what is between the strips.
export function pathBetween(from, to, origin, gap) {
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
