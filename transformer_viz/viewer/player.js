// @ts-check
// The step player's words and controls: token strips, the sentence, the buttons, the keys. Whoever has one extends it by what a
// step draws.
import { say } from "./language.js";
import { pieces } from "./sentence.js";
import { fillStrip, keepInSight, unfoldStrip } from "./strips.js";

// How long a step rests before somebody is told: longer than a person takes to the next press, who presses three times a second.
export const REST_MS = 400;
const PLAY_MS = 700;
/** Tokens of a strip that stands in one line above or below the other. */
const MOST_ON_STAGE = 32;
/** Of a letter; an accent and a sign for a space are signs too. */
const MOST_OF_LETTER = 2;

export class Player {
  // `keysIn` is where keys are the player's own.
  constructor(root, signal = undefined, keysIn = /** @type {Document | HTMLElement} */ (document)) {
    this.root = root;
    this.step = 0;
    this.run = null;
    this.timers = {};
    this.begins = /** @type {HTMLElement | null} */ (null);
    this.button("first", () => this.stepTo(0));
    this.button("back", () => this.stepTo(this.step - 1));
    this.button("play", () => (this.timers.play ? this.pause() : this.play()));
    this.button("next", () => this.stepTo(this.step + 1));
    this.button("last", () => this.stepTo(Infinity));
    this.part("speed").addEventListener("change", () => this.timers.play && this.play());
    this.part("slider").addEventListener("input", (event) => this.stepTo(Number(event.target.value)));
    keysIn.addEventListener("keydown", (event) => this.key(/** @type {KeyboardEvent} */ (event)), { signal });
  }

  // The first step that was not given.
  get first() {
    return this.data.first ?? 0;
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  button(name, act) {
    this.part(name).addEventListener("click", act);
  }

  update(data) {
    // The step of a run that is here already is the player's.
    const isOther = data.run !== this.run;
    this.data = data;
    this.isMoving = false;
    if (isOther) {
      this.pause();
      this.run = data.run;
      this.step = data.step;
    }
    this.step = Math.min(this.step, data.sentences.length - 1);
    this.root.classList.toggle("large", data.large);
    this.root.classList.toggle("dark", data.dark);
    this.root.classList.toggle("one-step", data.sentences.length === 1);
    this.part("hint").replaceChildren(...pieces(data.hint, data.terms));
    this.strip("source", data.source, null);
    this.strip("output", data.output, (t) => this.stepTo(t));
    this.pointing?.update(data);
    this.begin(data.prompt);
    this.#arrange(data);
    this.root.classList.toggle("has-written", Boolean(data.written));
    for (const [name, words] of Object.entries(data.labels ?? {})) this.part(name).setAttribute("aria-label", words);
    this.part("slider").max = String(data.sentences.length - 1);
    this.say();
  }

  strip(name, tokens, act) {
    fillStrip(this.part(name), tokens, act);
  }

  // A prompt's first token stands before what was written.
  begin(token) {
    this.begins?.remove();
    this.begins = null;
    if (!token) return;
    const looks = { className: "token given first-read prompt", textContent: token.text, title: token.title };
    this.begins = Object.assign(document.createElement("span"), looks);
    this.part("output").before(this.begins);
  }

  // Said by classes: with `:has` the browser would look at every token again for each mark that comes or goes among them.
  #arrange({ source, output, isStage }) {
    const strips = this.part("source").parentElement, has = { "without-source": !source.length, "without-output": !output.length };
    for (const [name, isIt] of Object.entries(has)) strips.classList.toggle(name, isIt);
    const isFew = [source, output].every(({ length }) => length > 0 && length <= MOST_ON_STAGE);
    this.root.classList.toggle("staged", Boolean(isStage && isFew));
    this.root.classList.toggle("of-words", source.some(({ text, class: looks }) => looks !== "special" && [...text].length > MOST_OF_LETTER));
    strips.classList.toggle("of-prompt", strips.querySelector(".first-read.prompt") !== null);
  }

  // ---- steps

  // Where somebody goes, the player no longer goes by itself.
  stepTo(step) {
    this.pause();
    this.go(step);
  }

  go(step) {
    this.move(step);
    this.say();
  }

  move(step) {
    const last = this.data.sentences.length - 1;
    this.isMoving = true;
    this.step = Math.max(this.data.least ?? 0, Math.min(last, step));
  }

  play() {
    if (this.step >= this.data.sentences.length - 1) this.go(this.first);
    clearInterval(this.timers.play);
    this.timers.play = setInterval(() => {
      if (this.step >= this.data.sentences.length - 1) this.pause();
      else this.go(this.step + 1);
    }, PLAY_MS / Number(this.part("speed").value));
    this.showPlaying();
  }

  pause() {
    if (!this.timers.play) return;
    clearInterval(this.timers.play);
    this.timers.play = undefined;
    this.showPlaying();
  }

  showPlaying() {
    const playing = Boolean(this.timers.play);
    this.root.classList.toggle("playing", playing);
    this.part("play").textContent = playing ? say("❚❚ Pause") : say("▶ Play");
    this.part("play").setAttribute("aria-label", playing ? say("Pause") : say("Play"));
    // A screen reader would fall behind while playing: it hears the step at which the player stops.
    this.part("sentence").setAttribute("aria-live", playing ? "off" : "polite");
  }

  // The words first, and then the marks: where something is, is asked after all that may move it.
  say() {
    this.sayWords();
    this.pointing?.show({ moves: this.isMoving });
  }

  sayWords() {
    this.part("sentence").replaceChildren(...pieces(this.data.sentences[this.step], this.data.terms));
    // Where steps are moments of a training, each has written something of its own.
    if (this.data.written) this.strip("written", this.data.written[this.step], null);
    const isTold = !this.data.unfolds || this.step === this.data.sentences.length - 1;
    const answer = !isTold ? null : this.data.answers ? this.data.answers[this.step] : this.data.answer;
    if (this.data.unfolds) unfoldStrip(this.part("output"), this.step, this.first);
    this.part("answer").className = `answer ${answer?.class ?? ""}`;
    this.part("answer").replaceChildren(...pieces(answer?.words ?? []));
    const slider = this.part("slider");
    slider.value = String(this.step);
    slider.setAttribute("aria-valuetext", this.part("sentence").textContent);
    const outputs = [...this.part("output").children], focused = this.root.getRootNode().activeElement;
    outputs.forEach((cell, place) => {
      // One stop for Tab; the arrows, which step, go on from it.
      const stop = place === this.step ? 0 : -1;
      // Also to say the same again makes the browser think about how it looks.
      if (cell.tabIndex !== stop) cell.tabIndex = stop;
      cell.classList.toggle("now", place === this.step);
      cell.classList.toggle("later", this.data.grows !== false && place > this.step);
      if (place === this.step) cell.setAttribute("aria-current", "step");
      else cell.removeAttribute("aria-current");
    });
    if (outputs.includes(focused)) outputs[this.step]?.focus();
    this.root.classList.toggle("at-start", this.step === this.first);
    const looked = this.data.looked[this.step];
    [...this.part("source").children].forEach((cell, place) => cell.classList.toggle("looked", place === looked));
    keepInSight(this.part("output"), this.step);
    keepInSight(this.part("source"), looked);
    if (!this.pointing) return;
    const pinned = Object.assign(document.createElement("span"), { className: "said-of-pin" });
    pinned.append(...pieces(this.pointing.words()));
    if (pinned.hasChildNodes()) this.part("sentence").append(pinned);
  }

  // The keys of what somebody holds who speaks to a room. It also begins a show, which would load the page again.
  get #clicker() {
    return this.data.large ? { PageUp: this.step - 1, PageDown: this.step + 1, F5: this.step } : {};
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || !this.root.isConnected) return;
    if (isTyping(event) || this.pointing?.key(event)) return;
    const last = this.data.sentences.length - 1;
    const steps = { ArrowLeft: this.step - 1, ArrowRight: this.step + 1, Home: 0, End: last, ...this.#clicker };
    if (event.key in steps) {
      event.preventDefault();
      this.stepTo(steps[event.key]);
    } else if (event.key === " " && /^(BODY|H[1-6])$/.test(event.composedPath()[0].tagName)) {
      event.preventDefault();
      this.timers.play ? this.pause() : this.play();
    }
  }
}

// Letters and arrows belong to whatever control has the focus; the player's own slider moves itself.
export function isTyping(event) {
  const target = event.composedPath()[0];
  const name = target?.tagName;
  const role = target?.getAttribute?.("role");
  return (
    (name === "INPUT" && target.type !== "checkbox") || name === "TEXTAREA" || name === "SELECT" || target?.isContentEditable ||
    ["combobox", "listbox", "option", "slider", "radio", "tab", "menuitem", "grid", "gridcell"].includes(role) ||
    Boolean(target?.closest?.("[role='radiogroup'], [role='tablist']"))
  );
}
