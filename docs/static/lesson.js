// @ts-check
// A lesson of the site: a card with its question, and beside it a live page, which is led to what the card speaks of.
"use strict";

const lesson = JSON.parse(document.getElementById("data").textContent);
const part = (name) => document.querySelector(`[data-part="${name}"]`);
const cards = lesson.cards;
/** What was answered, by the number of the card; null where it was skipped. */
const answers = new Map(), hinted = new Map();
let now = 0, frame = part("frame"), page = "";

const fill = (words, fields = {}) => words.replace(/\{(\w+)\}/g, (_, name) => fields[name] ?? "");
const worded = (name, fields) => fill(lesson.words[name], fields);

function made(tag, looks = {}, ...inside) {
  const element = Object.assign(document.createElement(tag), looks);
  element.append(...inside);
  return element;
}

// What stands in backquotes is code; all else is text.
function sentence(words) {
  return words.split("`").map((piece, place) => (place % 2 ? made("code", { textContent: piece }) : piece));
}

const TAGS = { code: "code", strong: "strong", emphasis: "em" };
const paragraph = (pieces) => made("p", {}, ...pieces.map(([style, text]) => (TAGS[style] ? made(TAGS[style], { textContent: text }) : text)));

// ---- the card

const isOpenNow = () => !cards[now].ask || answers.has(now);

// `isOther`: what was pressed on the last card is gone, and the keyboard would be at the page's beginning.
function show({ isOther = false } = {}) {
  const card = cards[now], isOpen = isOpenNow();
  part("counted").textContent = worded("step", { n: now + 1, m: cards.length });
  part("title").textContent = card.title;
  part("text").replaceChildren(...card.text.map(paragraph));
  part("needs").hidden = !card.needsApp && !card.asksOwnWord;
  part("needs").textContent = card.needsApp ? lesson.words.needs : lesson.words.own;
  part("question").replaceChildren(...(card.ask ? [isOpen ? judged(card.ask) : form(card.ask)] : []));
  showHints();
  part("back").hidden = now === 0;
  part("skip").hidden = isOpen;
  part("next").hidden = !isOpen || now === cards.length - 1;
  part("end").hidden = !isOpen || now < cards.length - 1;
  lead(card, isOpen);
  if (isOther) part("title").focus();
}

function showHints() {
  const { ask, hints } = cards[now], n = hinted.get(now) ?? 0;
  part("hints").replaceChildren(...hints.slice(0, n).map((hint) => made("li", {}, ...sentence(hint))));
  part("hint").hidden = isOpenNow() && Boolean(ask) || n >= hints.length;
}

function form({ text, options, isSeveral, number }) {
  const type = isSeveral ? "checkbox" : "radio", isNumber = number !== null;
  const choice = (option, place) => made("label", {}, made("input", { type, name: "answer", value: String(place) }), " ", made("code", { textContent: option }));
  const field = () => made("input", { type: "text", name: "answer", inputMode: "decimal", maxLength: 20, autocomplete: "off", ariaLabel: text.replaceAll("`", "") });
  const asked = made("fieldset", {}, made("legend", {}, ...sentence(text)), ...(isNumber ? [field()] : options.map(choice)));
  const told = made("p", { className: "told", role: "alert" });
  asked.classList.toggle("many", options.length > 6 && options.every((option) => option.length < 14));
  const whole = made("form", {}, asked, told, made("button", { className: "first", textContent: worded("answer") }));
  whole.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = isNumber ? typedNumber(whole.elements.namedItem("answer").value) : new FormData(whole).getAll("answer").map(Number);
    if (given === null) told.textContent = worded("no-number");
    else if (isNumber || given.length) answer(given);
  });
  return whole;
}

// 0.24, 0,24 and 24 %.
function typedNumber(words) {
  const found = /^\s*([-−]?\d+(?:[.,]\d+)?)\s*(%?)\s*$/.exec(words);
  return found ? Number(found[1].replace("−", "-").replace(",", ".")) / (found[2] ? 100 : 1) : null;
}

// The number that somebody means: of a share that is asked for in per cent 52 is 52 %.
const meant = ({ isPercent }, given) => (isPercent && Math.abs(given) > 1 ? given / 100 : given);

function isRight({ right, isSeveral, number, tolerance, isPercent }, given) {
  if (number !== null) return Math.abs(meant({ isPercent }, given) - number) <= tolerance + 1e-6;
  return isSeveral ? given.length === right.length && given.every((one) => right.includes(one)) : given.length === 1 && right.includes(given[0]);
}

function figure(ask, given) {
  return ask.isPercent ? `${Math.round(1e4 * meant(ask, given)) / 100} %` : String(given);
}

// Whether it was right, what was said, what the model does, and why.
function judged(ask) {
  const given = answers.get(now), { options, it, because } = ask, blank = lesson.blank;
  const said = () => (Array.isArray(given) ? given.map((one) => `\`${options[one].replace(/[.。]$/, "")}\``).join(lesson.comma) : `\`${figure(ask, given)}\``);
  const how = given === null ? "skipped" : isRight(ask, given) ? "right" : "wrong";
  const words = [...(given === null ? [] : [worded("said", { said: said() })]), worded("it", { it })].join(blank);
  const first = made("p", {}, made("strong", { textContent: worded(how) }), blank || " ", ...sentence(words));
  return made("div", { className: `judged ${how}` }, made("p", { className: "asked" }, ...sentence(ask.text)), first, made("p", {}, ...sentence(because)));
}

function answer(given) {
  answers.set(now, given);
  show();
  const told = part("question").querySelector(".judged");
  // Read aloud once it stands there, and the next key goes on.
  part("said").textContent = told.textContent;
  (now < cards.length - 1 ? part("next") : part("end").querySelector("a")).focus();
}

// ---- the live page beside it

function lead({ place, ask }, isOpen) {
  const covered = !isOpen && place?.covered;
  part("stage").hidden = !place;
  document.body.classList.toggle("alone", !place);
  part("cover").hidden = !covered;
  part("cover").textContent = covered ? worded(place.covered, { row: ask.row }) : "";
  frame.hidden = Boolean(covered);
  if (!place) return;
  const to = `${place.page}#${!isOpen && place.before ? place.before : place.open}`;
  // What is covered is not computed either.
  if (covered) return;
  if (place.page === page) frame.contentWindow.location.replace(new URL(to, location.href));
  else frameAnew(to);
  page = place.page;
}

// Each page of a model stands in a frame of its own. In one for all, a page that is still on its way would take the place of the one
// that was gone back to meanwhile, and the browser's way back would lead through the pages and not through the cards.
function frameAnew(to) {
  grown.disconnect();
  const fresh = frame.cloneNode();
  fresh.src = to;
  fresh.addEventListener("load", () => {
    grown.disconnect();
    if (fresh.contentDocument?.body) grown.observe(fresh.contentDocument.body);
  });
  frame.replaceWith(fresh);
  frame = fresh;
}

// In a narrow window the picture stands below the card, all of it: in a frame that scrolls by itself a finger would be held back.
// Pages on a disk may not look into each other; there the frame is as tall as the window.
const narrow = matchMedia("(max-width: 860px)"), grown = new ResizeObserver(fit);

function fit() {
  const height = narrow.matches && frame.contentDocument?.body?.offsetHeight;
  frame.style.height = height ? `${height}px` : "";
}

narrow.addEventListener("change", fit);

// ---- where one is

function go(number) {
  location.hash = String(number + 1);
}

function open() {
  const number = Number(/^#(\d{1,2})$/.exec(location.hash)?.[1] ?? 1);
  now = Math.min(cards.length, Math.max(1, number)) - 1;
  part("said").textContent = "";
  // The same card in the other language.
  for (const link of document.querySelectorAll(".bar a[lang]")) link.hash = location.hash;
  show({ isOther: true });
}

part("back").addEventListener("click", () => go(now - 1));
part("next").addEventListener("click", () => go(now + 1));
part("skip").addEventListener("click", () => answer(null));
part("hint").addEventListener("click", () => {
  hinted.set(now, (hinted.get(now) ?? 0) + 1);
  // What was typed, and where the picture was led to, stays.
  showHints();
  // After the last hint the keyboard is a Tab before the answer again.
  if (part("hint").hidden) part("title").focus();
  part("said").textContent = cards[now].hints[hinted.get(now) - 1].replaceAll("`", "");
});
// The arrows step also where the card has the keyboard.
window.addEventListener("keydown", (event) => {
  const { key, target } = event, isTyping = target instanceof Element && target.closest("form");
  if (isTyping || frame.hidden || !["ArrowLeft", "ArrowRight"].includes(key)) return;
  frame.contentDocument?.body?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
});
window.addEventListener("hashchange", open);
for (const name of ["back", "next", "skip", "hint"]) part(name).textContent = worded(name);
const links = [...lesson.following.map(({ title, page }) => [worded("follows", { title }), page]), [worded("end"), lesson.list]];
part("end").replaceChildren(made("p", { textContent: worded("can", { can: lesson.can }) }),
  ...links.map(([textContent, href]) => made("a", { textContent, href })));
open();
