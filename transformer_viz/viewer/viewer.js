// @ts-check
// The viewer shows one run: strips, sentence, player, kinds, layers and heads, the large map, the candidates and all small maps.
// What it shows is its own state. Somebody brings it a run, and hears of the state: the app, an exported page, a live page.
import { Aligned, weightWords } from "./aligned.js";
import { choose, fill, hear } from "./boxes.js";
import { briefWords, briefWordsOfEncoder, crossing } from "./brief.js";
import { hearTiles } from "./cells.js";
import { recoloured } from "./colours.js";
import { Find } from "./find.js";
import { say, saySentence } from "./language.js";
import { LinkedChart, standing } from "./linked.js";
import { mapFigure, withMarks } from "./map.js";
import { caption, circle, mark, rectangle } from "./marks.js";
import { Kind } from "./numbers.js";
import { REST_MS } from "./player.js";
import { besideWords, Pointing } from "./pointing.js";
import { pieces } from "./sentence.js";
import { focusOf, outlined } from "./smallmaps.js";
import { Share } from "./share.js";
import { clamped } from "./state.js";
import { keepInSight } from "./strips.js";
import { MOST_TOKENS, Travel } from "./travel.js";
import { isWholeAt, laterOf, unfoldedFigure, unstarred } from "./unfolded.js";
import { ViewersPlayer } from "./viewers_player.js";
import { isLong, partAt, windowed } from "./windows.js";

/** @typedef {import("./state.js").State} State */

const NARROW_PX = 640;
/** The most that stays empty below a map which is lower than that of another kind. */
const LARGEST_HOLE_PX = 100;
const TIGHT_PX = 1000;
const RESIZED_MS = 120;
const ENDED_MS = 600;

export class Viewer {
  #on;
  #root;
  #ends = new AbortController();
  /** @type {any} */
  #run = null;
  /** @type {Record<string, any>} */
  #kinds = {};
  /** @type {any} */
  #place = {};
  #looks = { dark: false, large: false };
  #player;
  // The charts of each kind: one that is drawn stays, since Plotly draws it anew more slowly than somebody presses.
  /** @type {Record<string, LinkedChart>} */
  #maps = {};
  /** @type {Record<string, LinkedChart>} */
  #small = {};
  /** @type {LinkedChart | null} */
  #overview = null;
  #parts = new Map();
  // What of each kind's map is seen of a long text, unless somebody wants all of it.
  /** @type {Record<string, {rows: any, columns: any}>} */
  #windows = {};
  #isWhole = false;
  #find;
  #asked = new Set();
  #travel;
  #curtain;
  #pins = 0;
  #rests;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #settles;

  /**
   * @param {HTMLElement} root holds viewer.html
   * @param {{heard?: (state: State, why: string) => void, chosenWay?: (name: string) => void,
   *   drawn?: (host: HTMLElement) => void, came?: () => void, share?: () => number, others?: () => LinkedChart[], hasWindow?: boolean, canExport?: boolean,
   *   hasLink?: boolean, keysIn?: HTMLElement,
   *   Curtain?: typeof import("./curtain.js").Curtain, showIdeas?: typeof import("./ideas.js").showIdeas}} [on]
   *   `came` is called when the numbers of a head have come; `share` says how much of the window's width it has; `others` are charts beside it in which one points too; `hasWindow` is false where its rows are level with others; `canExport`
   *   whether there is a way to a page of one file; `hasLink` whether the address says what is shown; `keysIn` is where keys
   *   are its own, by default the page; `Curtain` draws a lesson's question and `showIdeas` other texts,
   *   of who has these; `drawn` is called when Plotly has drawn the large map; `heard` at once at each press that changes the state; `why` is "step", "play", "kind", "layer", "head", "tile", "pin", "lines" or "measure".
   */
  constructor(root, on = {}) {
    this.#root = root;
    this.#on = on;
    // What signs mean that a style draws, for who does not see them.
    const said = { right: say("guessed right"), wrong: say("guessed wrong"), flag: say("your flag"), paint: say("painted") };
    for (const [name, words] of Object.entries(said)) root.style.setProperty(`--said-${name}`, JSON.stringify(words));
    const { signal } = this.#ends, charts = () => [this.#maps[this.#place.kind], ...Object.values(this.#small), ...on.others?.() ?? []];
    this.#player = new ViewersPlayer(root, signal, {
      moved: () => this.#moved(),
      stepped: (why, how) => this.#stepped(why, how),
      chosenWay: (way) => on.chosenWay?.(way),
      chosenMeasure: (measure) => this.set({ measure }, "measure"),
      weights: () => this.#weights(),
      keysIn: on.keysIn,
    });
    this.#player.pointing = new Pointing(this.#player, charts, (what) => this.#changed(what), signal);
    hear(Object.fromEntries(["kind", "layer", "head"].map((name) => [name, this.box(name)])), (name, value) => this.set({ [name]: value }, name));
    const hears = { point: (place) => this.#player.pointing.point(place), choose: (way) => on.chosenWay?.(way) };
    this.#curtain = on.Curtain ? new on.Curtain(root, hears) : null;
    this.#travel = new Travel(root.querySelector(".strips"));
    this.#find = new Find(this.part("find"), {
      go: ({ step, key }) => {
        if (key === undefined) return this.set({ step }, "step");
        this.set({ pin: [null, key] }, "pin");
        return keepInSight(this.part("source"), key);
      },
      whole: (isIt) => {
        this.#isWhole = isIt;
        this.draw();
      },
    });
    new Share(root, () => this.card, on.canExport ? (way) => on.chosenWay?.(way) : undefined, on.hasLink);
    let waits;
    window.addEventListener("resize", () => {
      clearTimeout(waits);
      waits = setTimeout(() => this.draw(), RESIZED_MS);
    }, { signal });
  }

  /**
   * Shows a run. A run that is shown already with nothing new draws nothing.
   * @param {any} run as `content.py` gives it, with `run`, the name that tells it from others
   * @param {Partial<State>} [start] parts of the state that somebody else decides; the others stay, as far as this run has them
   */
  show(run, start = {}) {
    const isOther = run !== this.#run;
    if (isOther) this.#take(run);
    if (isOther || JSON.stringify({ ...this.state, ...start }) !== JSON.stringify(this.state)) this.#go(start);
  }

  /**
   * As if somebody had pressed.
   * @param {Partial<State>} change
   * @param {string} why
   */
  set(change, why) {
    const before = JSON.stringify(this.state);
    this.#go(change);
    if (before !== JSON.stringify(this.state)) this.#changed(why);
  }

  /** @returns {State} */
  get state() {
    const { kind, layer, head, measure, lines } = this.#place, { pinned } = this.#player.pointing;
    const pin = pinned && pinned.kind === kind ? [pinned.query, pinned.key] : [];
    return { run: this.#run?.run ?? "", kind, layer, head, step: this.#player.step, pin, lines, measure };
  }

  /** Plays from the step on that is shown, whose look travels first. */
  play() {
    this.#player.play();
    this.#look(1, false);
  }

  /** The kinds of the run, with their numbers. */
  get kinds() {
    return this.#kinds;
  }

  /** The layer's place among those that the run has. */
  get layerPlace() {
    return this.#kind.numbers.indexOf(this.#place.layer);
  }

  /** Whether the rows of the kind are steps. */
  get isStepped() {
    return Boolean(this.#kind.linked.isStepped);
  }

  /** The colour of the step's row. */
  get accent() {
    return this.#colours.accent;
  }

  /** @param {{dark?: boolean, large?: boolean}} looks */
  restyle(looks) {
    this.#looks = { ...this.#looks, ...looks };
    this.#root.classList.toggle("large", this.#looks.large);
    this.#player.restyle(this.#looks);
    this.draw();
  }

  end() {
    clearTimeout(this.#rests);
    clearTimeout(this.#settles);
    this.#travel.end();
    this.#player.end();
    this.#ends.abort();
    const charts = [...Object.values(this.#maps), ...Object.values(this.#small), this.#overview ?? []].flat();
    for (const { host } of charts) window.Plotly?.purge(host);
  }

  part(name) {
    return this.#root.querySelector(`[data-part="${name}"]`);
  }

  box(name) {
    return this.#root.querySelector(`[data-box="${name}"]`);
  }

  // ---- the run and the state

  // The kind as the measure shows it.
  get #kind() {
    return this.#kinds[this.#place.kind].by(this.#place.measure);
  }

  #take(run) {
    this.#run = run;
    this.#parts.clear();
    this.#windows = {};
    this.#asked.clear();
    this.#kinds = Object.fromEntries(
      Object.entries(run.kinds).map(([name, data]) => [name, data instanceof Kind ? data : new Kind(data, run.pieces)]),
    );
    this.aligned = run.aligner ? new Aligned(run.aligner) : null;
    const names = Object.keys(this.#kinds);
    const chart = (host) => new LinkedChart(host, (chart) => this.#mark(chart));
    this.#maps = standing(this.#maps, names, this.part("maps"), () => chart(this.#figureRoom()));
    this.#small = standing(this.#small, names, this.part("mosaics"), (name) => chart(this.#smallRoom(name)));
    for (const name of ["kind", "layer", "head"]) this.box(name).hidden = run.controls?.[name] === false;
  }

  #figureRoom() {
    const host = Object.assign(document.createElement("div"), { className: "chart" });
    host.setAttribute("role", "figure");
    return host;
  }

  #smallRoom(name) {
    const host = this.#figureRoom(), { title } = this.#kinds[name];
    host.dataset.kind = name;
    host.setAttribute("aria-label", say("Layers and heads of the {kind}. Choose one with the layer and head boxes.", { kind: title }));
    hearTiles(host, ([layer, head]) => this.set({ kind: name, layer, head }, "tile"));
    return host;
  }

  // A pin stays with its run and its kind, unless it is changed.
  #go(change) {
    const { steps = this.#run.output.length, measures } = this.#run;
    const { step, pin, ...place } = clamped({ steps, measures, kinds: this.#kinds }, { ...this.state, pin: [], ...change });
    if (change.pin) this.#pins += 1;
    this.#place = place;
    this.#player.step = step;
    this.#ask();
    // Before the words: where something is, is asked with them, and what moves after that the browser arranges anew.
    this.#bringForward();
    this.#say(pin);
    this.#settle(0);
    this.draw();
  }

  // Asks for the numbers of a head that have not come. By then another may be shown: they are kept for later.
  async #ask() {
    const run = this.#run, { kind: name, head } = this.#place, kind = this.#kinds[name], layer = this.layerPlace;
    const key = `${name} ${layer} ${head}`;
    if (kind.has(layer, head) || this.#asked.has(key)) return;
    this.#asked.add(key);
    try {
      const part = await run.part(name, kind.numbers[layer], head);
      if (run !== this.#run) return;
      kind.add(layer, head, part);
      if (key !== `${this.#place.kind} ${this.layerPlace} ${this.#place.head}`) return;
      this.#say(this.state.pin);
      this.draw();
      this.#on.came?.();
    } catch {
      // The next press asks again.
      this.#asked.delete(key);
      this.draw();
    }
  }

  // Whether the numbers of what is shown are on their way. Until then Plotly draws nothing: an empty map of a long run takes it
  // as long as a full one, and what comes meanwhile would wait.
  get isAwaited() {
    const { kind, head } = this.#place, layer = this.layerPlace;
    return this.#asked.has(`${kind} ${layer} ${head}`) && !this.#kinds[kind].has(layer, head);
  }

  #moved() {
    this.#offerTokens();
    this.draw();
    this.#travel.end();
  }

  #stepped(why, { by, isHeld }) {
    this.#changed(why);
    this.#look(by, isHeld);
    this.#settle(ENDED_MS);
  }

  // Once the last step has rested, all looks of the run are to be seen at once.
  #settle(after) {
    clearTimeout(this.#settles);
    const { sentences } = this.#player.data, { step, pointing } = this.#player, isCovered = sentences.some((_, row) => this.#isCovered(row));
    const isEnd = this.isStepped && !this.#run.isGuessed && step > 0 && step === sentences.length - 1 && !isCovered;
    if (!isEnd || !after) pointing.ended(isEnd);
    else this.#settles = setTimeout(() => pointing.ended(true), after);
  }

  // The look of a step travels over it. Backwards it is that of the step that is left.
  #look(by, isHeld) {
    const { source, output, isGuessed } = this.#run, isBack = by === -1;
    const step = this.#player.step + (isBack ? 1 : 0), isFew = source.length + output.length <= MOST_TOKENS && source.length > 0;
    if (Math.abs(by) !== 1 || !isFew || isGuessed || this.#isCovered(step) || !this.isStepped) return this.#travel.end();
    const map = this.#maps[this.#place.kind], { host } = map, { xy: place } = map.places;
    const cellOf = (key) => {
      if (!place) return null;
      const box = host.getBoundingClientRect(), [left, top, right, bottom] = inSight(place, key - 0.5, step - 0.5, key + 0.5, step + 0.5);
      return new DOMRect(box.left + left, box.top + top, right - left, bottom - top);
    };
    return this.#travel.go(this.#player.pointing.looks(step), cellOf, { isBack, isShort: isHeld });
  }

  #changed(why) {
    if (why === "lines") this.#place.lines = this.#player.pointing.lines.chosen;
    this.#on.heard?.(this.state, why);
  }

  // Everything in words that depends on kind, layer and head.
  #say(pin) {
    const run = this.#run, kind = this.#kind, { head, lines, measure } = this.#place, layer = this.layerPlace;
    fill(this.box("kind"), Object.entries(this.#kinds).map(([name, { title }]) => [name, title]));
    fill(this.box("layer"), kind.numbers.map((number) => [number, say("layer {layer}", { layer: number + 1 })]));
    const heads = Array.from({ length: kind.heads }, (_, n) => [n, say("head {head}", { head: n + 1 })]);
    fill(this.box("head"), [...heads, ["mean", say("mean of heads")], ["max", say("max of heads")]]);
    for (const name of ["kind", "layer", "head"]) choose(this.box(name), String(this.#place[name]));
    const sentences = this.#sentences(kind.sentencesOf(layer, head)), { aligner } = run;
    this.#sayBeside();
    this.#player.update({
      run: run.run,
      step: this.#player.step,
      hint: run.hint ?? kind.hint ?? [["plain", kind.legend]],
      least: run.least,
      coveredFrom: run.coveredFrom,
      terms: run.terms,
      labels: run.labels,
      grows: run.grows,
      ...this.#looks,
      source: run.source,
      output: run.output,
      prompt: run.prompt,
      first: run.first,
      answer: run.answer,
      answers: run.answers,
      written: run.written,
      isStage: run.isStage ?? true,
      unfolds: run.unfolds,
      ways: run.ways,
      isAsked: run.isAsked,
      measure: run.measures && measure,
      measures: run.measures,
      measured: kind.measuredOf(layer, head),
      linked: {
        ...kind.linked, aligner, pinsAll: Boolean(aligner), pin, boxed: this.#pins,
        lines: run.hasLines === false ? null : lines,
      },
      sentences,
      head,
      brief: run.isBrief && run.isStage !== false ? (step) => this.#brief(step) : undefined,
      looked: sentences.map((_, step) => this.#lookedAt(step)),
    });
    this.#root.classList.toggle("asks", Boolean(run.isAsked));
    // Its places are empty, and there is nothing yet to go to.
    this.part("output").toggleAttribute("inert", Boolean(run.isAsked));
    this.part("share").hidden = !this.#canShare;
    this.#on.showIdeas?.(this.part("ideas"), run.ideas ?? [], (way) => this.#on.chosenWay?.(way));
    this.#curtain?.update(this.#question());
    this.#offerTokens();
    // A picture that somebody saves says of what it is; on a page of one run the page's own title does.
    const { host } = this.#maps[this.#place.kind];
    const named = { kind: kind.title, head: kind.names[layer][kind.headNumber(head)] };
    if (run.saved) host.dataset.title = [run.saved, say("{kind}, {head}", named)].join(" · ");
    this.#maps[this.#place.kind].host.setAttribute("aria-label",
      say("{kind}, {head}: {rows} query rows by {columns} key columns, and the candidates of this step. The sentence above says it.", {
        ...named, rows: kind.rows, columns: kind.columns,
      }));
  }

  // The sentence of each step, with what the page says of it: of what is covered, while somebody guesses, and of an answer.
  #sentences(own) {
    const { said, steps, coveredWords, told = {}, isBrief } = this.#run;
    if (said) return Array.from({ length: steps }, () => said);
    // What became of an answer is large above, and read aloud here.
    const quiet = (words) => (isBrief && this.isStepped ? words.map(([, text]) => ["quiet", text]) : words);
    return own.map((sentence, step) => (this.#isCovered(step) ? coveredWords : [...quiet(told[step] ?? []), ...sentence]));
  }

  // Whether a step's row may not be seen yet: by a question about it, or about its mask.
  #isCovered(step) {
    const { coveredFrom = Infinity, coveredWords } = this.#run, [first, end] = this.isStepped ? this.#kind.covered ?? [0, 0] : [0, 0];
    return step >= coveredFrom || Boolean(coveredWords && step >= first && step < end);
  }

  // What is covered is not for others either, and of a long text a card could not be read.
  get #canShare() {
    const { isGuessed, isStage = true, output } = this.#run, isOpen = !output.some((_, step) => this.#isCovered(step));
    return isStage && !isGuessed && this.isStepped && isOpen && this.#player.root.classList.contains("staged");
  }

  /** The run as a card to take along, with the words that the page has for its steps; null where there is none. */
  get card() {
    if (!this.#canShare) return null;
    const { output, source, saved, title = "", remark = [] } = this.#run, { kind, head } = this.#place, { pointing } = this.#player;
    const { linked, names } = this.#kind, place = (key) => (linked.read?.[key] ?? -1) + 1, isOfSource = linked.strips[kind][1] === "source";
    const rows = output.map((_, query) => pointing.looks(query).map(({ weight }, key) => ({ query, key: isOfSource ? key : place(key), weight })));
    const style = getComputedStyle(this.#player.root), colour = (name) => style.getPropertyValue(name).trim();
    const said = (sentence) => (sentence ?? []).map(([, text]) => text).join(""), about = names[this.layerPlace][this.#kind.headNumber(head)];
    const words = output.map((_, step) => ({ rests: said(this.#brief(step)?.rests), plays: said(this.#brief(step)?.plays) }));
    const does = remark.find(([looks]) => looks === "strong")?.[1];
    const [text] = (saved ?? title).split(" · "), [, ...model] = (saved ?? "").split(" · "), ground = colour("--st-background-color") || colour("--paper");
    return {
      read: source.map((token) => token.text), written: output.map((token) => token.text), isOfSource, rows, words,
      all: pointing.allSoFar(pointing.weights(), output.length - 1).map(({ query, key, weight }) => ({ query, key: isOfSource ? key : place(key), weight })),
      title: does ?? text,
      crossing: said(crossing(head)), about: [...model, this.#kind.title, about].join(" · "),
      step: pointing.lines.hasEnded ? output.length : this.#player.step,
      file: text.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "run",
      colours: { ground, ink: style.color, muted: colour("--muted"), accent: colour("--accent"), tile: colour("--st-secondary-background-color") || ground },
      fonts: { words: style.fontFamily, code: colour("--st-code-font") || "monospace" },
    };
  }

  // A step that the model itself wrote, in a few words; nothing where they would not be enough.
  #brief(step) {
    const { said, first = 0, output, told = {} } = this.#run, { head, measure } = this.#place;
    const isWhole = !said && !this.#isCovered(step) && step >= first && output[step] && measure === "weights" && head !== "max";
    if (!isWhole || !this.#kind.has(this.layerPlace, head)) return null;
    if (!this.isStepped) return briefWordsOfEncoder(output[step].text);
    const looks = this.#player.pointing.looks(step), most = looks.reduce((a, b) => (b.weight > a.weight ? b : a), { weight: 0 });
    if (!most.to) return null;
    // What has no cell, such as what a decoder reads first, is none of the tokens.
    const tokens = looks.filter(({ to }) => to).map(({ to, weight }) => ({ text: to.textContent, weight }));
    const words = briefWords({ looks: tokens, written: output[step].text, head });
    return { ...words, rests: [...(told[step] ?? []), ...words.rests] };
  }

  // The tokens of a long text that one may go to: none that is not written yet.
  #offerTokens() {
    const { output, source, unfolds, first = 0 } = this.#run, { linked } = this.#kind, texts = (tokens) => tokens.map(({ text }) => text);
    const written = unfolds ? output.slice(0, Math.max(first, this.#player.step + 1)) : output;
    const isOfSource = linked.strips[this.#place.kind][1] === "source";
    this.#find.show(this.#hasWindow(this.#place.kind), this.isStepped ? texts(written) : [], isOfSource ? texts(source) : []);
  }

  #lookedAt(step) {
    if (this.#run.looked !== undefined) return this.#run.looked;
    return this.aligned ? this.aligned.best(step) : this.#kind.lookedAt(this.layerPlace, this.#place.head, step);
  }

  // The question of a lesson that is answered here, with what its columns are called.
  #question() {
    const { asked } = this.#run;
    return asked && { ...asked, names: this.#kinds[asked.kind].linked.keys };
  }

  // What the page says beside the boxes, with the head and the kind in their places.
  #sayBeside() {
    const room = this.part("remark"), kind = this.#kind;
    if (!room) return;
    const title = kind.names[this.layerPlace][kind.headNumber(this.#place.head)];
    const named = { head: ["strong", title[0].toUpperCase() + title.slice(1)], heads: ["plain", String(kind.numbers.length * kind.heads)] };
    // With few words there is no room for the legend among the buttons.
    const { remark = [], isBrief, hint = kind.hint, terms } = this.#run, isSentence = /[.。]$/.test(hint?.at(-1)?.[1] ?? "");
    // What is said of a head is not true of all as one.
    const ofHead = remark.findIndex(([name]) => name === "head"), isOne = ofHead < 0 || Number.isInteger(this.#place.head);
    const said = isOne ? remark : remark.slice(0, ofHead);
    const ended = (words) => (isSentence ? [...words, ["plain", " "]] : saySentence("{sentence}. ", { sentence: words }));
    const legend = isBrief && hint?.length ? ended(hint) : [];
    room.replaceChildren(...pieces([...legend, ...said.map((piece) => named[piece[0]] ?? piece)], terms));
  }

  // All rows, of which the chart has those of the steps that were.
  #weights() {
    const kind = this.#kind, { columns, full = 1, word } = kind, layer = this.layerPlace, { head } = this.#place;
    const weights = kind.weightsOf(layer, head), reasons = kind.reasonsOf(layer, head);
    const at = (query, key) => weights[query * columns + key] / full, isMasked = (query, key) => reasons[query * columns + key] > 0;
    const said = (value) => (word ? `${word} ${value.toPrecision(3)}` : weightWords(value));
    const words = (query, key) => (isMasked(query, key) ? say("masked") : said(weights[query * columns + key]));
    const beside = kind.second?.of(layer, head);
    const second = (query, key) => (beside ? besideWords({ word: kind.second.words, unit: kind.second.unit }, beside[query * columns + key]) : "");
    return { shape: [kind.rows, columns], at, isMasked, words, second };
  }

  // ---- what is drawn

  // The colour that stands for each one of the templates, which are for a light page.
  get darkened() {
    return this.#looks.dark ? this.#run.dark : {};
  }

  get #colours() {
    return recoloured(this.#run.colours, this.darkened);
  }

  /** Draws what is not there yet, as when plotly.js has come. */
  draw() {
    clearTimeout(this.#rests);
    if (!window.Plotly || !this.#run) return;
    this.#showMap();
    for (const [name, chart] of Object.entries(this.#small)) this.#showSmall(name, chart);
    this.#showOverview();
    this.#rests = setTimeout(() => this.#drawAtRest(), REST_MS);
  }

  // The large map of the kind, before those of the others.
  #bringForward() {
    for (const [name, { host }] of Object.entries(this.#maps)) {
      const isHere = name === this.#place.kind, hidden = isHere ? null : "true";
      if (host.ariaHidden === hidden && isHere === (host.dataset.part === "focus")) continue;
      if (isHere) host.dataset.part = "focus";
      else delete host.dataset.part;
      host.ariaHidden = hidden;
    }
  }

  // As a sketch where Plotly has drawn another head or step of it.
  #showMap() {
    const { kind: name } = this.#place, map = this.#maps[name];
    const isDrawn = map.has(this.#looksOf(name)) && map.size.width;
    if (!isDrawn && this.isAwaited) return undefined;
    const figure = this.#mapOf(name);
    if (!isDrawn) this.#makeRoom();
    if (!isDrawn) return this.#drawMap(name, map, figure);
    map.paint(figure);
    return this.#mark(map);
  }

  #showSmall(name, chart) {
    chart.host.hidden = !this.#kinds[name].by(this.#place.measure).mosaic;
    if (chart.host.hidden) return;
    if (!chart.has(this.#looksOfSmall(name))) return this.#drawSmall(name, chart);
    // Rows that are still to come are covered; that all are there Plotly says once somebody rests.
    if (chart.drawn.isWhole !== this.#isWholeAt(name)) chart.isLate = true;
    return this.#mark(chart);
  }

  // All heads of a run that has too many for one picture, by one number: a figure that comes whole.
  #showOverview() {
    const { overview, run } = this.#run, room = this.part("overview");
    if (!room) return;
    room.hidden = !overview;
    if (!overview) return;
    this.#overview ??= new LinkedChart(this.#overviewRoom(room), (chart) => this.#mark(chart));
    const { data, layout, words } = overview, chart = this.#overview, looks = JSON.stringify([words, layout.meta, this.#looks.dark, run]);
    chart.host.setAttribute("aria-label", say("{words}. A click makes it the focus.", { words }));
    if (chart.has(looks)) this.#mark(chart);
    else chart.draw(recoloured({ data, layout }, this.darkened), { run, kind: layout.meta.kind }, looks);
  }

  #overviewRoom(room) {
    const host = this.#figureRoom();
    hearTiles(host, ([layer, head]) => this.set({ kind: this.#run.overview.layout.meta.kind, layer, head }, "tile"));
    room.replaceChildren(host);
    return host;
  }

  // Plotly draws when nobody has pressed for a while, a chart at a time, so that a press never waits for all.
  #drawAtRest() {
    if (this.isAwaited) return;
    const late = Object.entries(this.#maps).filter(([name, map]) => map.isLate || !map.has(this.#looksOf(name)) || this.#tells(name, map));
    const isNow = ([name]) => name === this.#place.kind, [first] = [...late.filter(isNow), ...late.filter((one) => !isNow(one))];
    const small = Object.entries(this.#small).find(([, chart]) => chart.isLate && !chart.host.hidden);
    if (first && isNow(first)) this.#drawMap(first[0], first[1], this.#mapOf(first[0]));
    else if (small) this.#drawSmall(...small);
    else if (first) this.#drawMap(first[0], first[1], this.#mapOf(first[0]));
    else return;
    this.#rests = setTimeout(() => this.#drawAtRest());
  }

  // Whether a map that is not in focus holds more, or less, than the step has reached.
  #tells(name, { drawn }) {
    return this.#unfolds(name) && drawn.step !== this.#player.step;
  }

  #unfolds(name) {
    return Boolean(this.#run.unfolds && this.#kinds[name].picture.grows);
  }

  #looksOf(name) {
    return JSON.stringify([this.#partsOf(name), this.#windowOf(name)]);
  }

  #partsOf(name) {
    return JSON.stringify([this.#run.run, this.#run.version, name, this.#place.measure, this.#looks.dark, this.#isNarrow, this.#isTight]);
  }

  #hasWindow(name) {
    return this.#on.hasWindow !== false && isLong(this.#kinds[name]);
  }

  // Around the step, and around what it looks at most, or what is pinned; null where all of a map is seen.
  #windowOf(name) {
    if (this.#isWhole || !this.#hasWindow(name)) return null;
    const { linked, rows, columns } = this.#kinds[name], before = this.#windows[name], { pinned } = this.#player.pointing, { step } = this.#player;
    const isNow = name === this.#place.kind, pin = pinned?.kind === name ? pinned : null;
    const row = linked.isStepped ? step : pin?.query ?? pin?.key ?? 0, isOfSource = linked.isStepped && linked.strips[name][1] === "source";
    const column = pin?.key ?? (isOfSource && isNow ? this.#lookedAt(step) : null) ?? row, within = (place, n) => Math.min(place, n - 1);
    const part = { rows: partAt(rows, within(row, rows), before?.rows), columns: partAt(columns, within(column, columns), before?.columns) };
    this.#windows[name] = part;
    return part;
  }

  get #isNarrow() {
    return window.innerWidth * (this.#on.share?.() ?? 1) < NARROW_PX;
  }

  get #isTight() {
    return window.innerWidth * (this.#on.share?.() ?? 1) < TIGHT_PX;
  }

  #looksOfSmall(name) {
    return JSON.stringify([this.#run.run, this.#run.version, name, this.#place.measure, this.#looks.dark]);
  }

  // What a kind's large map is filled into, made once.
  #emptyMapOf(name) {
    const looks = this.#partsOf(name), kind = this.#kinds[name].by(this.#place.measure);
    if (!this.#parts.has(looks)) this.#parts.set(looks, kind.mapParts(this.#isNarrow, this.#run.large, this.darkened));
    return this.#parts.get(looks);
  }

  // Room for the highest map, so that another kind moves nothing of what stands below; where one is much lower, it would leave a hole.
  #makeRoom() {
    const heights = Object.keys(this.#kinds).map((name) => this.#emptyMapOf(name).layout.height), most = Math.max(...heights);
    this.part("maps").style.minHeight = most - Math.min(...heights) <= LARGEST_HOLE_PX ? `${most}px` : "";
  }

  // The figure of a kind's large map: of another than the one in focus, its first head.
  #mapOf(name) {
    const { measure, kind: now, layer, head } = this.#place, kind = this.#kinds[name].by(measure);
    const parts = this.#emptyMapOf(name), { step } = this.#player;
    const steps = this.#run.isGuessed ? { step: step - 1, row: step } : { step };
    const place = now === name ? { layer: kind.numbers.indexOf(layer), head, ...steps } : { layer: 0, head: 0, ...steps };
    const figure = mapFigure(kind, place, parts, this.#run, this.#colours);
    // In a small window the names of the candidates need the room of the colour bar.
    if (this.#isTight && parts.bars) figure.layout.coloraxis = { ...figure.layout.coloraxis, showscale: false };
    const unfolded = this.#unfolds(name) ? { ...figure, ...unfoldedFigure(figure, step) } : figure, part = this.#windowOf(name);
    return part ? windowed(unfolded, part) : unfolded;
  }

  async #drawMap(name, map, figure) {
    const about = { run: this.#run.run, kind: name, step: this.#player.step };
    await map.draw(figure, about, this.#looksOf(name), () => withMarks(figure));
    this.#player.pointing.show();
    if (name === this.#place.kind) this.#on.drawn?.(map.host);
  }

  #smallOf(name) {
    return this.#kinds[name].by(this.#place.measure).smallMaps(this.darkened);
  }

  // Whether all rows of a kind's small maps are there.
  #isWholeAt(name) {
    return !this.#unfolds(name) || isWholeAt(this.#smallOf(name).layout.meta, this.#player.step);
  }

  async #drawSmall(name, chart) {
    const whole = this.#smallOf(name), isWhole = this.#isWholeAt(name), figure = isWhole ? whole : { ...whole, data: unstarred(whole.data) };
    const picture = () => {
      const { kind, layer, head } = this.#place, seen = this.#unfolds(name) ? unfoldedFigure(whole, this.#player.step) : whole;
      return name === kind ? outlined(seen, { layer, head }, this.#colours) : seen;
    };
    await chart.draw(figure, { run: this.#run.run, kind: name, isWhole }, this.#looksOfSmall(name), picture);
    this.#player.pointing.show();
  }

  // ---- what is marked over a chart: the row of the step, rings, the tiles in focus

  #mark(chart) {
    if (!chart.wanted || !chart.places?.xy) return;
    if (chart.wanted.marks) this.#markMap(chart);
    else this.#markTiles(chart);
  }

  #markMap({ host, places, wanted: { marks: { row, rings } } }) {
    const maps = ["xy", "x3y3"].flatMap((name) => places[name] ?? []), { step } = this.#player, radius = rings.marker.size / 2;
    const boxes = row ? maps.map((place) => inSight(place, row.x[0], row.y[0], row.x[1], row.y[2])) : [];
    mark(host, "row", boxes.map((box) => rectangle(...box)).join(""), row ? strokeOf(row.line) : {});
    const around = (isNow) => maps.flatMap((place) => rings.x.flatMap((key, i) => {
      const [x, y] = [place.right(key), place.down(rings.y[i])];
      return (rings.y[i] === step) === isNow && isWithin(place, x, y) ? [circle(x, y, radius)] : [];
    })).join("");
    const { color } = rings.marker.line;
    mark(host, "rings", around(false), strokeOf({ color, width: 1.5 }));
    mark(host, "ring", around(true), strokeOf({ color, width: 3 }));
    const { kind, layer, head } = this.#place, { asked } = this.#run, isHead = asked?.layer === layer && asked?.head === head;
    if (host.dataset.part === "focus") this.#curtain?.place(host, kind, places.xy, isHead);
  }

  #markTiles(chart) {
    const { host, places, wanted, drawn } = chart, { layer, head, kind } = this.#place, isHere = drawn?.kind === kind;
    const { xy: place } = places, { meta, plot_bgcolor: paper } = wanted.layout;
    const at = ([left, top, right, bottom]) => rectangle(place.right(left), place.down(top), place.right(right), place.down(bottom));
    const later = host.dataset.kind && this.#unfolds(host.dataset.kind) ? laterOf(meta, this.#player.step) : [];
    mark(host, "later", later.map(at).join(""), { fill: paper });
    // A step changes nothing else here.
    const shown = isHere && `${layer} ${head}`;
    if (chart.marked?.places === places && chart.marked.shown === shown) return;
    chart.marked = { places, shown };
    const { accent } = this.#colours;
    const { boxes, words, font, width } = focusOf(wanted, { layer, head }), { font: { family }, paper_bgcolor: ground } = wanted.layout;
    mark(host, "tile", isHere ? boxes.map(at).join("") : "", strokeOf({ color: accent, width }));
    const said = isHere ? words.map(([x, y, text]) => [place.right(x), place.down(y), text]) : [];
    caption(host, said, { color: accent, size: font.size, family, ground });
  }
}

const strokeOf = ({ color, width }) => ({ stroke: color, "stroke-width": width });
const isWithin = ({ left, top, width, height }, x, y) => x >= left && x <= left + width && y >= top && y <= top + height;

// The corners of a box in cells, as far as it is in sight where somebody has zoomed in.
function inSight(place, x0, y0, x1, y1) {
  const across = (x) => Math.max(place.left, Math.min(place.left + place.width, place.right(x)));
  const down = (y) => Math.max(place.top, Math.min(place.top + place.height, place.down(y)));
  return [across(x0), down(y0), across(x1), down(y1)];
}
