// @ts-check
// The strips of tokens above a run: what was read, and what was written, one button a step.
import { say } from "./language.js";

const LONG = 100;
const SHOWN = new WeakMap();

// The same tokens stay, and so does the keyboard's focus on one of them.
export function fillStrip(box, tokens, act) {
  const shown = JSON.stringify(tokens);
  if (SHOWN.get(box)?.shown === shown) return;
  SHOWN.set(box, { shown, tokens });
  PLACES.delete(box);
  box.classList.toggle("long", tokens.length > LONG);
  box.replaceChildren(...tokens.map((token, place) => {
    const cell = document.createElement(act ? "button" : "span");
    cell.className = "token " + (token.class ?? "");
    cell.textContent = token.text;
    cell.title = token.title;
    if (token.tint !== undefined) cell.style.setProperty("--tint", token.tint);
    if (act) cell.addEventListener("click", () => act(place));
    return cell;
  }));
}

// What is not written yet is an empty button, which leads there; what was given is there from the beginning.
export function unfoldStrip(box, step, first) {
  const tokens = unfolded(SHOWN.get(box)?.tokens ?? [], step, first);
  tokens.forEach(({ text, title, isToCome }, place) => {
    const cell = box.children[place], { class: looks = "", tint } = SHOWN.get(box).tokens[place];
    // Its looks tell too how probable it was, and whether it is right.
    for (const name of looks.split(" ").filter(Boolean)) cell.classList.toggle(name, !isToCome);
    if (tint !== undefined) cell.style.setProperty("--tint", isToCome ? 0 : tint);
    // Not touched where nothing changes: the browser would arrange the page anew.
    if (cell.textContent !== text) cell.textContent = text;
    if (cell.title !== title) cell.title = title;
    if (isToCome) cell.setAttribute("aria-label", title);
    else cell.removeAttribute("aria-label");
  });
}

// The tokens as they are at a step, before those after it are written.
export function unfolded(tokens, step, first) {
  return tokens.map(({ text, title }, place) => {
    const isToCome = place > step && place >= first;
    return isToCome ? { text: "", title: say("step {step}: not written yet", { step: place + 1 }), isToCome } : { text, title, isToCome };
  });
}

/** @type {WeakMap<Element, {tops: number[], height: number, most: number, at: number}>} */
const PLACES = new WeakMap();
let sizes;

// A long strip scrolls by itself; `scrollIntoView` would move the whole page too. Where its tokens are is asked once, and it is
// moved only to another line: for each of both the browser would arrange the whole page.
export function keepInSight(box, place) {
  if (!box.classList.contains("long") || !box.children[place]) return;
  if (!PLACES.has(box)) PLACES.set(box, placesIn(box));
  const places = PLACES.get(box), to = Math.max(0, Math.min(places.most, places.tops[place] - places.height / 2));
  if (places.at === to) return;
  places.at = to;
  box.scrollTop = to;
}

function placesIn(box) {
  sizes ??= new ResizeObserver((entries) => entries.forEach(({ target }) => PLACES.delete(target)));
  sizes.observe(box);
  // By hand it is elsewhere, and the next step brings it back.
  for (const name of ["wheel", "pointerdown", "touchmove"]) box[`on${name}`] = () => PLACES.delete(box);
  const height = box.clientHeight;
  return { tops: [...box.children].map((cell) => cell.offsetTop), height, most: box.scrollHeight - height, at: NaN };
}
