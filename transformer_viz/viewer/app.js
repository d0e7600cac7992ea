// @ts-check
// The viewer in the app: the box of the text, the picture, and the address, three components of one module with one state. What is
// pressed is drawn here at once; the server hears of it, and what it answers never overwrites what was pressed since.
import { keep } from "./address.js";
import { Curtain } from "./curtain.js";
import { Heads } from "./heads.js";
import { showIdeas } from "./ideas.js";
import { say } from "./language.js";
import { Learned } from "./learned.js";
import { Masked } from "./masked.js";
import { Master } from "./master.js";
import { OneHead } from "./one_head.js";
import { exactPart } from "./packed.js";
import { Pair } from "./pair.js";
import { withPress } from "./presses.js";
import { Report } from "./report.js";
import { NumbersTable } from "./table.js";
import { Viewer } from "./viewer.js";
import { Waiting } from "./waiting.js";

const OF_RUN = ["step", "pin"];
const MOST_KEPT = 6;
/** How long typing rests before what is typed is followed. */
const TYPED_MS = 250;
const MOST_AWAITED_MS = 1000;

const typed = new Master();
const shown = new Master(OF_RUN);
const tellTyped = new Report(() => ({ text: typed.state.text, isEntered: Boolean(typed.state.isEntered), n: typed.n }));
/** The run of a page of which the browser has heard last. */
let heardRun = 0;
const tellShown = new Report(() => ({ ...shown.told(), heard: heardRun }));

const texts = new Waiting((given) => textBox(given)), pictures = new Waiting((given) => picture(given));

// ---- the text

let box = null, draft = null, textData = null;

export function textBox(given) {
  const { parentElement, data, setStateValue } = given, root = parentElement.querySelector(".typed");
  const gone = () => {
    if (root.isConnected) return;
    const wasShown = box?.root === root;
    if (wasShown) box = null;
    texts.gone(root, wasShown);
  };
  if (texts.waits(box, root, given, data.request < typed.request)) return gone;
  const isNew = box?.root !== root || box.isLong !== data.isLong;
  textData = data;
  if (isNew) {
    box = new TextBox(root, data.isLong, given);
    tellTyped.begin((state) => setStateValue("at", state), root, data.heard);
  }
  if (tellTyped.hears(data.heard)) typed.begin(data.request);
  if (data.request > typed.request) tellTyped.arrived();
  // What the page has put there, as an example, takes the place of what is half typed.
  if (typed.take({ run: "text", start: { text: data.text }, heard: data.heard, request: data.request }) && !isNew) draft = null;
  // What was typed before this component was there.
  if (isNew && data.heard < typed.n) tellTyped.soon();
  box.given = given;
  box.show();
  keepText();
  return gone;
}

class TextBox {
  constructor(root, isLong, given) {
    this.root = root;
    this.given = given;
    this.isLong = isLong;
    const field = this.field = document.createElement(isLong ? "textarea" : "input");
    field.setAttribute("aria-label", say("Source text"));
    field.autocomplete = "off";
    field.spellcheck = false;
    const note = Object.assign(document.createElement("span"), { className: "note", textContent: isLong ? "Ctrl ⏎" : "⏎" });
    note.setAttribute("aria-hidden", "true");
    field.placeholder = isLong ? say("Type, then press Ctrl and Enter") : say("Type, then press Enter");
    field.addEventListener("input", (event) => {
      draft = field.value;
      this.show();
      clearTimeout(this.rests);
      if (this.follows && !event.isComposing) this.rests = setTimeout(() => this.follow(), TYPED_MS);
    });
    // What is half typed stays so where somebody turns to something else.
    field.addEventListener("blur", () => clearTimeout(this.rests));
    field.addEventListener("keydown", (event) => this.key(event));
    root.replaceChildren(field, note);
  }

  show() {
    const text = draft ?? typed.state.text ?? "";
    if (this.field.value !== text) this.field.value = text;
    this.field.maxLength = textData.most;
    this.root.classList.toggle("waits", draft !== null && draft !== typed.state.text);
    this.root.classList.toggle("follows", this.follows);
  }

  // Whether what is typed is shown without Enter: the server says so of the run that it has shown last.
  get follows() {
    return !this.isLong && Boolean(picture_?.latest?.follows);
  }

  follow() {
    if (draft !== null && draft.trim() && draft !== typed.state.text) this.send({ text: draft, isEntered: false });
  }

  key(event) {
    event.stopPropagation();
    if (event.key === "Escape") this.field.blur();
    if (event.key !== "Enter" || event.isComposing || (this.isLong && !event.ctrlKey && !event.metaKey)) return;
    event.preventDefault();
    this.send({ text: this.field.value, isEntered: true });
  }

  send(words) {
    clearTimeout(this.rests);
    draft = null;
    // What was pressed of the run before belongs to it: the server hears of it first, and the address forgets it.
    tellShown.now();
    if (words.text !== typed.state.text) {
      typed.press(words);
      // Until the answer is there, the picture is of another text.
      if (picture_) picture_.root.ariaBusy = "true";
    } else if (words.isEntered && typed.state.isEntered === false) {
      // What has been followed already is entered all the same; it is no other text, and its step stays in the address.
      typed.press({ isEntered: true });
    }
    tellTyped.now();
    this.show();
    keepText();
    picture_?.keepAddress();
  }
}

function keepText() {
  const { text } = typed.state;
  keep("", "text", text === textData.default || [...text].length > textData.longest ? {} : { text });
}

// ---- the picture

/** @type {any} */
let picture_ = null;
/** @type {string | null} The run that has played by itself, which it does once, also where one comes back to its page. */
let hasPlayed = null;

export function picture(given) {
  const { parentElement, data, setStateValue } = given;
  const root = parentElement.querySelector(".pair, .masked, .heads, .learned, .one-head, .viewer");
  if (pictures.waits(picture_, root, given, data.request < shown.request)) return () => root.isConnected || pictures.gone(root, false);
  if (picture_?.root !== root) {
    picture_?.viewer.end();
    picture_ = new Picture(root);
    tellShown.begin((state) => setStateValue("at", state), root, data.heard);
  }
  if (tellShown.hears(data.heard)) {
    shown.begin(data.request);
    // Another session opened the address, which has what was pressed.
    shown.state = { ...shown.state, cells: [] };
  }
  picture_.given = given;
  picture_.arrived(data);
  const mine = picture_;
  // Streamlit also calls this of a component that stays.
  return () => {
    if (root.isConnected) return;
    mine.viewer.end();
    const wasShown = picture_ === mine;
    if (wasShown) picture_ = null;
    pictures.gone(root, wasShown);
  };
}

/** @type {Map<string, Promise<any>>} */
const contents = new Map();

class Picture {
  constructor(root) {
    this.root = root;
    /** @type {any} */
    this.given = null;
    const [Shown] = [[Pair, ".pair"], [Masked, ".masked"], [Heads, ".heads"], [Learned, ".learned"], [OneHead, ".one-head"], [Viewer, ".viewer"]].find(([, like]) => root.matches(like));
    this.viewer = new Shown(root, {
      heard: (state) => this.heard(state), chosenWay: (name) => this.chosenWay(name), pressedCell: (cell) => this.pressedCell(cell), drawn: (host) => this.drawn(host),
      came: () => this.came(), canExport: true, Curtain, showIdeas,
    });
    this.table = new NumbersTable(this.viewer.part("maps") ?? this.viewer.part("mosaics"));
    this.words = "";
  }

  // Each run of the page says what is shown; what is there already is not fetched nor drawn again.
  async arrived(data) {
    // The answer to an older text: that to the newer one is on its way.
    if (typed.isLate(data.textHeard)) return;
    this.latest = data;
    const words = JSON.stringify(data);
    // Until the numbers are there, and nobody takes the picture of before for that of these words.
    this.root.ariaBusy = words === this.words ? null : "true";
    if (words === this.words) return;
    const names = [data.content, ...(data.beside ? [data.beside.content, data.beside.difference] : [])];
    let content;
    try {
      content = await Promise.all(names.map(kept));
    } catch (error) {
      names.forEach((name) => contents.delete(name));
      if (this.latest === data) this.missing(error.message);
      return;
    }
    if (this.latest !== data) return;
    this.words = words;
    this.root.ariaBusy = null;
    this.root.classList.toggle("grey", data.isGrey);
    for (const one of [this.root, ...this.root.querySelectorAll(".viewer")]) one.classList.toggle("all", data.isAll);
    this.root.classList.toggle("guessing", Boolean(data.parts.isGuessed));
    this.root.toggleAttribute("inert", data.isGrey);
    // Also a page that one came to without leaving it, as by Back to another lesson's step.
    if (data.request > shown.request) tellShown.arrived();
    shown.take(data);
    const run = this.composed(content, data);
    const looks = { dark: data.dark, large: data.large };
    if (JSON.stringify(looks) !== this.looks) this.viewer.restyle(looks);
    this.looks = JSON.stringify(looks);
    this.viewer.show(run, shown.state);
    this.agree();
    this.begin(data);
    if (!window.Plotly) plotlyFrom(data.plotly).then(() => this.viewer.draw(), (error) => this.missing(error.message));
    // What was pressed before this component was there, as on another page.
    if (data.heard < shown.n) tellShown.soon();
  }

  // The first text of one's own plays by itself, unless somebody is quicker.
  begin({ run, parts }) {
    if (!parts.plays || hasPlayed === run) return;
    hasPlayed = run;
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.viewer.play?.();
  }

  // The run with what the page says of it: another object where anything is another.
  composed([content, ofB, difference], { content: name, run, parts, beside }) {
    const about = JSON.stringify([name, run, parts, beside]);
    if (this.about !== about) {
      this.about = about;
      this.run = runOf(content, name, run, parts);
      if (beside) this.run = pairOf(this.run, runOf(ofB, beside.content, beside.run, beside.parts), difference, beside.difference);
    }
    return this.run;
  }

  // The viewer brings the state into the run's range.
  agree() {
    const { run, ...state } = this.viewer.state;
    shown.state = { ...shown.state, ...state };
    this.keepAddress();
  }

  heard({ run, ...state }) {
    const changed = Object.entries(state).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(shown.state[name]));
    if (!changed.length) return;
    shown.press(Object.fromEntries(changed));
    this.keepAddress();
    if (this.viewer.isAwaited) this.later = setTimeout(() => this.came(), MOST_AWAITED_MS);
    else tellShown.soon();
  }

  // The numbers of a head come first: what a page does of a press would keep the server from sending them.
  came() {
    clearTimeout(this.later);
    tellShown.soon();
  }

  // The table is that of the large map, whichever it is.
  drawn(host) {
    this.table.host = host;
    this.table.show();
  }

  // The first is the page's own box, all others are the server's.
  chosenWay(name) {
    if (name === "word") {
      box?.field.focus();
      box?.field.select();
      return;
    }
    // The tab that it opens is below the maps, out of sight.
    if (name === "why") bringUp(document.querySelector(".stTabs"));
    shown.press({ way: { name, n: shown.n + 1 } });
    tellShown.now();
  }

  // What it does is the server's; of several all count, also of those that it has not heard of yet.
  pressedCell(cell) {
    shown.press({ cells: withPress(shown.state.cells ?? [], cell) });
    tellShown.now();
  }

  keepAddress() {
    const { kind, layer, head, step, pin = [], lines, measure, moment, position, row } = shown.state;
    const { page, defaults, kinds, positions, rows } = this.latest.address;
    const has = this.viewer.state;
    // Of another run that is on its way, the step is not known yet.
    const isOther = typed.isLate(this.latest.textHeard);
    const words = {
      kind: kind === defaults.kind ? undefined : kinds[kind],
      layer: layer === defaults.layer ? undefined : `layer ${layer + 1}`,
      head: head === defaults.head ? undefined : Number.isInteger(head) ? `head ${head + 1}` : `${head} of heads`,
      step: isOther || step === defaults.step ? undefined : String(step + 1),
      pin: !isOther && pin.length ? pin.map((place) => (place === null ? "" : place + 1)).join(",").replace(/,$/, "") : undefined,
      lines: lines === "auto" ? undefined : lines,
      measure: measure === "weights" ? undefined : measure,
      moment: moment === defaults.moment ? undefined : String(moment),
      position: position === defaults.position ? undefined : positions?.[position],
      row: row === defaults.row ? undefined : rows?.[kind]?.[row],
    };
    keep(page, "picture", Object.fromEntries(Object.entries(words).filter(([name, word]) => word !== undefined && name in has)));
  }

  missing(words) {
    this.root.ariaBusy = null;
    const place = this.viewer.part("missing");
    place.hidden = false;
    place.textContent = words;
  }
}

// A run of which more may be seen than before is the same run, drawn anew.
function runOf(content, name, run, parts) {
  const figure = (kind, layer, head) => fetched(`${name}/${kind}/${layer}/${head}`);
  return { ...content, ...parts, run, version: name, figure, part: async (...place) => exactPart(await figure(...place)) };
}

// Both runs with what both have; all small maps are those of the difference.
function pairOf(a, b, difference, name) {
  const kindsOf = (run, mosaicOf) => Object.fromEntries(Object.keys(difference.kinds).map((kind) =>
    [kind, { ...run.kinds[kind], measures: undefined, mosaic: mosaicOf(kind) }]));
  return {
    ...a, dark: { ...difference.dark, ...a.dark }, version: `${a.version} ${name}`, kinds: kindsOf(a, (kind) => difference.mosaics[kind]),
    isStage: false, b: { ...b, isStage: false, kinds: kindsOf(b, () => null) }, difference,
  };
}

// Brings tabs to the top of the window, again as they grow once they are filled, until a hand moves something.
function bringUp(tabs) {
  if (!tabs) return;
  const sizes = new ResizeObserver(() => tabs.scrollIntoView());
  sizes.observe(tabs);
  for (const name of ["wheel", "pointerdown", "keydown"]) addEventListener(name, () => sizes.disconnect(), { capture: true, once: true });
}

// The content of this name, fetched once as long as it is among the last ones.
function kept(name) {
  if (!contents.has(name)) contents.set(name, fetched(name));
  while (contents.size > MOST_KEPT) contents.delete(contents.keys().next().value);
  return contents.get(name);
}

async function fetched(name) {
  const answer = await fetch(new URL(`run/${name}`, document.baseURI));
  if (!answer.ok) throw Error(await answer.text());
  return answer.json();
}

let plotly = null;

// Resolves once plotly.js is there; `name` is the file that the server has beside the page.
function plotlyFrom(name) {
  if (window.Plotly) return Promise.resolve();
  plotly ??= new Promise((found, failed) => {
    const script = document.createElement("script");
    script.src = name;
    script.onload = () => found(undefined);
    script.onerror = () => {
      plotly = null;
      failed(Error(say("{name} did not come, so nothing can be drawn. Is the server there? Reload the page.", { name })));
    };
    document.head.append(script);
  });
  return plotly;
}

// ---- the address

export function address({ data }) {
  const { text, ...others } = data.others;
  heardRun = data.run;
  // Where no picture is to be seen, what it would say of itself stays.
  if (data.hasViewer && !picture_) keep(data.page, "picture", others);
  if (data.hasViewer && !box?.root.isConnected && text !== undefined) keep(data.page, "text", { text });
  keep(data.page, "boxes", data.words);
}
