// @ts-check
// The page with a model in it: what is typed is decoded by the engine in a thread of its own, and shown like a saved run.
import { areas, cellAt } from "./cells.js";
import { recoloured } from "./colours.js";
import { later, say } from "./language.js";
import { mosaicOf, sizedParts, tokenAxes } from "./live_figures.js";
import {
  answerMark, bestHead, bestHeadWords, candidatesOf, displayToken, legendOf, outputStrip, placeLabels, sentencesOf, shorten, sourceStrip,
} from "./live_words.js";
import { npzFile } from "./npz.js";
import { Kind } from "./numbers.js";
import { element, Page, part, start } from "./page.js";

const SETTLED_MS = 300;
const HOW_TO_MASK = later("Click a cell to mask it, or to open it, for all layers and heads; a label for its whole row or column.");

// The engine, which answers by messages; of a run that is not wanted any more it gives null.
class Engine {
  constructor(model, words) {
    const code = new Blob([document.getElementById("engine").textContent], { type: "text/javascript" });
    this.waiting = new Map();
    this.last = 0;
    try {
      this.worker = new Worker(URL.createObjectURL(code));
    } catch (error) {
      this.failure = new Error(say("This browser does not let the page start its engine: {why}", { why: error.message }));
      return;
    }
    this.worker.onmessage = ({ data: { id, run, error } }) => {
      const asked = this.waiting.get(id);
      this.waiting.delete(id);
      if (error) asked?.reject(new Error(error));
      else asked?.resolve(run);
    };
    this.worker.onerror = ({ message }) => {
      this.failure = new Error(say("The engine of this page stopped: {why}", { why: message ?? say("this browser did not let it start") }));
      for (const { reject } of this.waiting.values()) reject(this.failure);
    };
    this.worker.postMessage({ model, words });
  }

  decode(text, options) {
    this.last += 1;
    if (this.failure) return Promise.reject(this.failure);
    return new Promise((resolve, reject) => {
      this.waiting.set(this.last, { resolve, reject });
      this.worker.postMessage({ id: this.last, text, options });
    });
  }

  cancel(id) {
    if (this.waiting.has(id)) this.worker.postMessage({ cancel: id });
  }
}

// One kind of attention of a run that was made here; `pattern` is that of the example, which the program laid out.
class LiveKind extends Kind {
  constructor(pattern, trace) {
    const { kind } = pattern.linked, written = trace.output_tokens;
    const tokens = kind === "decoder" ? trace.target_tokens : trace.source_tokens;
    const rowTokens = kind === "encoder" ? trace.source_tokens : trace.target_tokens;
    const keys = placeLabels(tokens), places = placeLabels(rowTokens);
    const queries = kind === "encoder" ? places : places.map((label, t) => `${label}→${displayToken(written[t])}`);
    const linked = { ...pattern.linked, rows: queries, keys, read: [null, ...written.slice(1).keys()] };
    super({ ...pattern, ...trace.attentions[kind], tokens, rowTokens, keys, queries, linked, legend: legendOf(kind, trace), trace });
    this.codes = [...new Set(this.allReasons.values)].filter(Boolean).sort((a, b) => a - b);
    const { layout } = pattern.mask, { xaxis, yaxis } = tokenAxes(layout, this, places);
    this.mask = { ...pattern.mask, layout: { ...layout, xaxis: { ...xaxis, tickangle: -90 }, yaxis } };
  }

  sentencesOf(layer, head) {
    return sentencesOf(this, this.trace, { layer, head });
  }

  mapParts(isNarrow, isLarge, colours) {
    return sizedParts(super.mapParts(false, isLarge, colours), this, isNarrow, isLarge);
  }

  smallMaps(colours) {
    const best = this.linked.kind === "cross" ? bestHead(this.trace) : null;
    return mosaicOf(this, recoloured(this.tiles, colours), best);
  }
}

// What the page shows of a run, in the form in which the program writes it of a saved one.
function shownRun(example, trace) {
  const { source, text, edits } = trace;
  return {
    ...example,
    title: `${displayToken(source, 600)} → ${displayToken(text, 600)}`,
    made: [...example.live.made, ...edits.map((edit) => say("edit {edit}", { edit }))],
    best: bestHeadWords(trace),
    source: sourceStrip(trace),
    output: outputStrip(trace),
    answer: answerMark(trace),
    candidates: trace.steps.map(candidatesOf),
    true: trace.alignment,
    kinds: Object.fromEntries(Object.entries(example.kinds).map(([name, pattern]) => [name, new LiveKind(pattern, trace)])),
  };
}

class LivePage extends Page {
  constructor(data) {
    // As the app's bare page: at the first step, before anything is written, unless the address says something.
    const unfolds = !location.hash;
    super({ ...data, ...(unfolds ? { unfolds, focus: { ...data.focus, step: 0 }, opens: data.live.source } : {}) });
    this.example = data;
    this.unfolds = unfolds;
    this.timers = {};
    this.edits = [];
    // Of a lesson's card: how many steps may be seen, and whether the right tokens may.
    this.most = "";
    this.hides = false;
    this.asked = this.shown = 0;
    // Of the run that is being made: the step at which it will be shown.
    this.opensAt = null;
    this.engine = new Engine(data.live.model, data.live.words);
    part("masks").querySelector(".masks").before(element("p", "aside", say(HOW_TO_MASK)));
    this.listenToTyping();
    const examples = [["", say("Examples")], ...data.live.examples.map((text) => [text, shorten(text, 60)])];
    part("examples").replaceChildren(...examples.map(([value, text]) => new Option(text, value)));
    part("text").value = data.live.source;
    this.readState();
    // The page's own example would tell what the card covers.
    document.querySelector("main").classList.toggle("waits", Boolean(this.most) || this.hides);
    if (JSON.stringify(this.state()) === JSON.stringify({ text: data.live.source })) this.showChanges();
    else this.ask(this.stepOfAddress());
  }

  listenToTyping() {
    // Cells belong to the text that was; a head that is switched off stays so for the next one.
    const changed = () => {
      // Of one's own text, too, the first step comes first; in a lesson what its card says.
      this.unfolds = !this.most && !this.hides;
      this.edits = this.edits.filter((edit) => edit.endsWith(":zero"));
      this.ask();
    };
    part("text").addEventListener("input", changed);
    part("typed").addEventListener("submit", (event) => event.preventDefault());
    part("examples").addEventListener("change", () => {
      if (part("examples").value) part("text").value = part("examples").value;
      part("examples").value = "";
      changed();
    });
    part("how").addEventListener("input", () => this.ask());
    part("save").addEventListener("click", () => this.save());
    part("masks").addEventListener("click", (event) => this.flip(event));
    this.off = element("button", "", "");
    Object.assign(this.off, { type: "button" }).dataset.part = "off";
    this.off.addEventListener("click", () => this.toggle(`${this.headAddress()}:zero`));
    this.viewer.box("head").after(this.off);
  }

  // ---- what is asked: the text, and options in the words of `transformerViz.decode`

  state() {
    const state = { text: part("text").value };
    for (const field of part("how").querySelectorAll("[data-option]")) {
      if (field.value && field.value !== "greedy") state[field.dataset.option] = field.value;
    }
    if (this.edits.length) state.edits = this.edits.join(",");
    if (this.most) state.most = this.most;
    if (this.hides) state.answer = "hidden";
    return state;
  }

  options() {
    const { text, prefix, ban, edits, strategy, most, answer, ...drawn } = this.state(), tokens = (words) => this.tokensOf(words);
    const numbers = Object.entries(drawn).map(([name, value]) => [name, Number(value)]);
    return {
      ...(strategy ? { strategy, ...Object.fromEntries(numbers) } : {}),
      ...(prefix ? { prefix: tokens(prefix) } : {}), ...(ban ? { ban: tokens(ban) } : {}), ...(edits ? { edits } : {}),
      ...(most ? { max_length: Number(most) } : {}),
    };
  }

  // Tokens as somebody types them: signs, or words with spaces between them.
  tokensOf(words) {
    const { target } = this.example.live.model;
    const areSigns = target.slice(4).every((token) => Array.from(token).length === 1);
    return areSigns ? words.match(/<(?:pad|start|end|unk)>|./gsu) : words.split(/\s+/).filter(Boolean);
  }

  // The run of what is typed now takes the place of the one that is shown, and of one that is still being made.
  async ask(step = null) {
    part("how").querySelector(".how").classList.toggle("draws", this.state().strategy === "sample");
    this.engine.cancel(this.asked);
    this.opensAt = step;
    const answer = this.engine.decode(part("text").value, this.options()), asked = (this.asked = this.engine.last);
    this.settle();
    try {
      const trace = await answer;
      if (trace && asked === this.asked) this.showRun(trace, this.opensAt);
    } catch (error) {
      if (asked === this.asked) this.tell(error.message);
    }
  }

  settle() {
    clearTimeout(this.timers.settled);
    this.timers.settled = setTimeout(() => this.writeAddress(), SETTLED_MS);
  }

  showRun(trace, step) {
    const { reading } = this.example.live.model, space = reading.between;
    const spelt = (tokens) => (reading.cut === "sentence" ? tokens.join(space).replace(/ (?=[,?])/g, "") : tokens.join(space));
    this.trace = Object.assign(trace, { spelt });
    if (this.hides) trace.alignment = trace.alignment.map(() => null);
    this.tell("");
    this.shown += 1;
    const n = trace.output_tokens.length, last = n - (trace.finished === "end" ? 2 : 1);
    const { unfolds } = this, opens = unfolds ? displayToken(trace.source, 600) : undefined;
    this.take({ ...shownRun(this.example, this.trace), run: `live ${this.shown}`, unfolds, opens }, { step: step ?? (unfolds ? 0 : last) });
    document.querySelector("main").classList.remove("waits");
    this.showChanges();
    // The step is another one than when it was asked for.
    this.settle();
  }

  tell(words) {
    part("told").textContent = words;
    part("told").hidden = !words;
    document.querySelector("main").classList.toggle("is-stale", Boolean(words));
  }

  // ---- changes of masks and heads

  headAddress() {
    const { kind, layer, head } = this.viewer.state;
    return Number.isInteger(head) ? `${kind}.${layer + 1}.${head + 1}` : `${kind}.${layer + 1}`;
  }

  toggle(edit) {
    this.edits = this.edits.includes(edit) ? this.edits.filter((one) => one !== edit) : [...this.edits, edit];
    this.ask(this.viewer.state.step);
  }

  flip(event) {
    const chart = event.target.closest(".mask"), [area] = chart ? areas(chart) : [], place = area && cellAt(area, event);
    if (!place) return;
    const name = Object.keys(this.viewer.kinds)[[...chart.parentElement.children].indexOf(chart)];
    const number = (place) => (place === null ? "*" : place + 1);
    this.toggle(`${name}:${number(place.query)}-${number(place.key)}`);
  }

  showChanges() {
    const isOff = this.edits.includes(`${this.headAddress()}:zero`);
    this.off.textContent = Number.isInteger(this.viewer.state.head)
      ? (isOff ? say("Switch this head on") : say("Switch this head off"))
      : (isOff ? say("Switch these heads on") : say("Switch these heads off"));
    const buttons = this.edits.map((edit) => {
      const button = Object.assign(element("button", "", `${edit} ✕`), { type: "button", title: say("Take this change back") });
      button.addEventListener("click", () => this.toggle(edit));
      return button;
    });
    part("changes").replaceChildren(...(buttons.length ? [element("span", "", say("Changed:")), ...buttons] : []));
  }

  // ---- the run as a file

  async save() {
    try {
      const trace = this.trace ?? (await this.engine.decode(part("text").value, this.options()));
      const { attentions, spelt, ...rest } = trace, { model } = this.example.live;
      const arrays = Object.entries(attentions).flatMap(([kind, { weights, reasons }]) => [
        [`attentions/${kind}/weights`, weights], [`attentions/${kind}/reasons`, reasons],
      ]);
      const layers = Object.entries(attentions).map(([kind, { weights }]) => [kind, { layers: [...Array(weights.shape[0]).keys()] }]);
      const by = { checkpoint: model.name, variant: model.variant, task: model.task, device: "a browser", ...trace.made_by };
      const file = npzFile({ ...rest, attentions: Object.fromEntries(layers), made_by: by }, arrays);
      const link = element("a");
      link.href = URL.createObjectURL(new Blob([file]));
      link.download = `${(trace.source.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "run").slice(0, 60)}.npz`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    } catch (error) {
      this.tell(error.message);
    }
  }

  // ---- the address: what is typed and chosen too

  address() {
    return this.edits ? { ...super.address(), ...this.state() } : super.address();
  }

  // What the address says. With a text it says all, as the page's own does; without one, what it does not name stays as it is.
  readState() {
    const words = new URLSearchParams(location.hash.slice(1)), isAll = words.has("text");
    if (isAll) part("text").value = words.get("text").slice(0, 2000);
    for (const field of part("how").querySelectorAll("[data-option]")) {
      field.value = words.get(field.dataset.option) ?? (isAll ? "" : field.value);
      if (field.tagName === "SELECT" && !field.value) field.value = "greedy";
    }
    if (isAll || words.has("edits")) this.edits = (words.get("edits") ?? "").split(",").filter(Boolean);
    // What a card covers, the next one does not.
    this.most = /^[1-9]\d{0,2}$/.test(words.get("most") ?? "") ? words.get("most") : "";
    this.hides = words.get("answer") === "hidden";
  }

  goByAddress() {
    // Where an address says something, all is there at once.
    if (location.hash && this.run.unfolds) {
      this.unfolds = false;
      this.take({ ...this.run, unfolds: false, opens: undefined }, {});
    }
    super.goByAddress();
    if (!this.edits) return;
    const before = JSON.stringify(this.state());
    this.readState();
    if (before !== JSON.stringify(this.state())) return this.ask(this.stepOfAddress());
    // A run that is still being made is the address's too.
    this.opensAt = this.stepOfAddress();
    this.showChanges();
  }

  // Of the text that the address names, which may have more steps than the run that is shown.
  stepOfAddress() {
    const step = new URLSearchParams(location.hash.slice(1)).get("step") ?? "";
    return /^\d{1,4}$/.test(step) ? Number(step) - 1 : null;
  }

  heard(why) {
    super.heard(why);
    this.showChanges();
  }
}

const page = new LivePage(JSON.parse(document.getElementById("data").textContent));
document.documentElement.classList.toggle("framed", window.top !== window);
start(page);

// For other programs, and for tests: a text, and keywords of the program's `decode`.
window.transformerViz = {
  async decode(text, options = {}) {
    const trace = await page.engine.decode(String(text), options);
    const arrays = ({ weights, reasons }) => ({ ...weights, reasons });
    return {
      source: trace.source_tokens,
      tokens: trace.output_tokens,
      text: trace.text,
      probabilities: trace.steps.map(({ probability }) => probability),
      attentions: Object.fromEntries(Object.entries(trace.attentions).map(([kind, attention]) => [kind, arrays(attention)])),
    };
  },
};
