// What Python cannot know of a browser: whether its window is narrow, and what it is to keep for the next visit; a term that leads
// to a lesson, and whether what a lesson points at is in sight; and for the printer how wide the page is: charts are drawn for the
// window, and paper is another width. A page as wide as the window is printed smaller, and whole.

const NARROW_PX = 768, YEAR_S = 31_536_000;
const made = () => document.head.appendChild(Object.assign(document.createElement("style"), { id: "paper" }));
// The step whose point has been brought into sight, and the point that waits until it is drawn.
const BROUGHT = (document.__brought ??= { step: "", waits: null, found: null });
const SIGHT = (document.__sight ??= new MutationObserver(() => bringIntoSight(BROUGHT.waits)));
const GROWS = (document.__grows ??= new ResizeObserver(() => bring(BROUGHT.found)));
// The card that has the keyboard, and whether it has been put there.
const STOOD = (document.__stood ??= { card: null, isOther: false, isPut: true });
const STANDS = (document.__stands ??= untilAHandMoves(new MutationObserver(() => stand())));
const PAPER = document.getElementById("paper") ?? made();

export default function ({ data, setStateValue, setTriggerValue }) {
  const isNarrow = window.innerWidth < NARROW_PX;
  // Who goes to another page at once says it there: here it would be answered with this page.
  if (data.narrow !== isNarrow && !data.leaving) setStateValue("narrow", isNarrow);
  const folder = location.pathname.slice(0, location.pathname.lastIndexOf("/") + 1);
  if (data.cookie) document.cookie = `${data.cookie}; path=${folder}; max-age=${YEAR_S}; samesite=lax`;
  document.documentElement.lang = data.language;
  measure();
  addEventListener("resize", measure);
  document.onclick = (event) => {
    openLesson(event, setTriggerValue);
    copyLink(event);
    changeLanguage(event, folder);
  };
  bringIntoSight(data.point);
  standOn(data.card);
}

// What was pressed on a card is gone with it, and the keyboard would be at the page's beginning: it stands on another card's
// heading, and after an answer on the way on. What is drawn anew gets it back, until a hand moves something.
function standOn(card) {
  const before = STOOD.card, isSame = before?.step === card?.step;
  STOOD.card = card;
  if (!card) return STANDS.disconnect();
  if (isSame && (card.waits || !before.waits)) return;
  STOOD.isOther = !isSame || (STOOD.isOther && !STOOD.isPut);
  STOOD.isPut = false;
  STANDS.observe(document.body, { childList: true, subtree: true });
  stand();
}

function untilAHandMoves(observer) {
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, () => STOOD.isPut && observer.disconnect(), { capture: true });
  return observer;
}

function stand() {
  const room = document.querySelector(".st-key-lesson-card"), heading = room?.querySelector(`[data-card="${STOOD.card.step}"]`);
  const to = STOOD.isOther ? heading : heading && room.querySelector(":is(.st-key-lesson-next, .st-key-lesson-end) button");
  const isLost = document.activeElement === document.body;
  if (!to || document.activeElement === to || !(isLost || (STOOD.isOther && !STOOD.isPut))) return;
  to.focus({ preventScroll: true });
  if (STOOD.isOther && !STOOD.isPut) room.scrollTop = 0;
  STOOD.isPut = true;
}

// Once a step, as soon as it is drawn, and again as what is above it grows, until a hand moves something: who scrolls away wants to.
function bringIntoSight(point) {
  SIGHT.disconnect();
  if (!point || BROUGHT.step === point.step) return;
  const found = document.querySelector(point.selector);
  const isBusy = document.querySelector('.viewer[aria-busy="true"]') !== null;
  if (found?.clientHeight && !isBusy && [...found.querySelectorAll(".chart")].every(isDrawn)) {
    BROUGHT.step = point.step;
    BROUGHT.found = found;
    bring(found);
    GROWS.observe(document.querySelector(".stMainBlockContainer") ?? document.body);
    for (const name of ["wheel", "pointerdown", "keydown"]) addEventListener(name, () => GROWS.disconnect(), { capture: true, once: true });
    return;
  }
  BROUGHT.waits = point;
  SIGHT.observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["aria-busy"] });
}

// What is pointed at, and of it above all the row that waits for an answer.
function bring(found) {
  for (const one of [found, document.querySelector(".asked-row:not([hidden], .open)")]) one?.scrollIntoView({ block: "nearest" });
}

// Plotly has drawn it; in a map of no kind that is in focus nobody sees whether it has.
const isDrawn = (chart) => chart.querySelector(".main-svg") !== null || !chart.clientWidth || chart.ariaHidden === "true";

// A term leads to a lesson in this session, by an entry of the browser's history of its own, which history.js would not make.
function openLesson(event, setTriggerValue) {
  const link = event.composedPath().find((one) => one.matches?.("dfn > a"));
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  History.prototype.pushState.call(history, history.state, "", location.href);
  setTriggerValue("lesson", new URL(link.href).searchParams.get("lesson"));
}

// The address of what is seen now. Where the browser lets no page write there, it is an ordinary link, which can be copied.
function copyLink(event) {
  const link = event.composedPath().find((one) => one.matches?.("a.copy-link"));
  if (!link || !navigator.clipboard) return;
  event.preventDefault();
  navigator.clipboard.writeText(location.href).then(() => { link.textContent = link.dataset.copied; }, () => {});
}

// The same place in another language, which this browser remembers.
function changeLanguage(event, folder) {
  const link = event.composedPath().find((one) => one.matches?.("a.language"));
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const address = new URL(location.href), name = "transformer_viz_language";
  address.searchParams.set("lang", link.hreflang);
  // A lesson without a language is in the page's.
  const lesson = address.searchParams.get("lesson");
  if (lesson) address.searchParams.set("lesson", lesson.replace(/^[a-z]{2,3}\./, ""));
  document.cookie = `${name}=${link.hreflang}; path=${folder}; max-age=${YEAR_S}; samesite=lax`;
  location.assign(address);
}

function measure() {
  const words = `@page { size: ${innerWidth}px ${Math.ceil(innerWidth * Math.SQRT2)}px; margin: 0; }`;
  // For a rule that comes, the browser thinks of every element anew.
  if (PAPER.textContent !== words) PAPER.textContent = words;
}
