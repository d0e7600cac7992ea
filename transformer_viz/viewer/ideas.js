// @ts-check
// Texts to look at instead, each a button with a picture of it: what is read above what is written, and which belong together.
import { say } from "./language.js";
import { svg } from "./marks.js";

const HEIGHT = 72;
/** Of the two lines of words. */
const TOP = 12;
const BOTTOM = 66;
const LETTER_PX = 7.3;
const GAP_PX = 8;

/** @typedef {{way: string, title: string, read: string[], written: string[], links: number[]}} Idea */

/**
 * @param {HTMLElement} room
 * @param {Idea[]} ideas
 * @param {(way: string) => void} choose
 */
export function showIdeas(room, ideas, choose) {
  room.hidden = !ideas.length;
  const shown = JSON.stringify(ideas);
  if (room.dataset.shown === shown) return;
  room.dataset.shown = shown;
  const heading = Object.assign(document.createElement("p"), { textContent: say("Or begin with another:") });
  room.replaceChildren(...(ideas.length ? [heading] : []), ...ideas.map((idea) => {
    const button = Object.assign(document.createElement("button"), { type: "button" });
    const title = Object.assign(document.createElement("span"), { textContent: idea.title });
    button.setAttribute("aria-label", say("{title}: {text}", { title: idea.title, text: idea.read.join(" ") }));
    button.append(title, pictureOf(idea));
    button.addEventListener("click", () => choose(idea.way));
    return button;
  }));
}

/** @param {Idea} idea */
function pictureOf({ read, written, links }) {
  const width = Math.max(160, ...[read, written].map((tokens) => widthOf(tokens) + 2));
  const picture = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, "aria-hidden": "true" });
  const above = placesOf(read, width), below = placesOf(written, width);
  links.forEach((key, query) => {
    const crosses = links.some((other, place) => (place - query) * (other - key) < 0);
    const [x1, x2] = [above[key], below[query]], [y1, y2] = [TOP + 5, BOTTOM - 12], middle = (y1 + y2) / 2;
    picture.append(svg("path", { class: crosses ? "crosses" : "", d: `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}` }));
  });
  const words = /** @type {[string[], number[], number][]} */ ([[read, above, TOP], [written, below, BOTTOM]]);
  for (const [tokens, places, y] of words) {
    tokens.forEach((token, i) => {
      picture.append(Object.assign(svg("text", { x: places[i], y, "text-anchor": "middle" }), { textContent: token }));
    });
  }
  return picture;
}

const lengthOf = (token) => [...token].length * LETTER_PX;
const widthOf = (tokens) => tokens.reduce((sum, token) => sum + lengthOf(token) + GAP_PX, -GAP_PX);

// The middle of each word of a line, which is in the middle of the picture.
function placesOf(tokens, width) {
  let from = (width - widthOf(tokens)) / 2;
  return tokens.map((token) => {
    const middle = from + lengthOf(token) / 2;
    from += lengthOf(token) + GAP_PX;
    return middle;
  });
}
