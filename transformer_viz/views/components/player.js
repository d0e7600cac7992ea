// The bridge between the step player, the focus chart and Python. `Player` is export/page/player.js, put before this.
//
// Stepping happens here: the figure's frames are applied in the browser, no request is made. Once a
// step has rested, it is reported to Python, which writes it into the URL and redraws nothing.

export default function ({ parentElement, data, setStateValue, setTriggerValue }) {
  const root = parentElement.querySelector(".player");
  const me = root.__player ?? (root.__player = new ChartPlayer(root));
  Object.assign(me, { setStateValue, setTriggerValue });
  me.update(data);
  me.arrange();
  // Streamlit also calls this of a player that stays, as in chart.js.
  return () => root.isConnected || me.pause();
}

class ChartPlayer extends Player {
  constructor(root) {
    super(root);
    const maps = () => [this.chart, ...document.querySelectorAll('[class*="st-key-mosaic-"] .chart')];
    this.highlight = new Highlight(this, maps, (name, value) => this.setStateValue(name, value));
    this.measures = new Measures(root, (chosen) => this.setTriggerValue("measure", chosen));
    this.ways = Object.assign(document.createElement("span"), { className: "ways", hidden: true });
    document.addEventListener("chart-drawn", (event) => {
      if (root.isConnected && event.target.closest(".st-key-focus")) this.arrange();
    });
    document.addEventListener("pointerdown", (event) => this.release(event));
  }

  update(data) {
    // Where something was guessed its token is made anew; a hand on the keyboard stays where it is.
    const sources = this.part("source").children, held = [...sources].indexOf(this.root.getRootNode().activeElement);
    super.update(data);
    sources[held]?.focus();
    this.root.classList.toggle("guessing", Boolean(data.is_guessed));
    this.measures.show(data);
    const { run, step, linked } = data, isCovered = data.covered_from !== undefined;
    document.dispatchEvent(new CustomEvent("place-noted", { detail: { run, step, pin: linked?.pin ?? [], isCovered } }));
  }

  // What one may do at a step: answers stand behind their question, and after the last step ways on among the controls. The
  // keyboard stays where the buttons were.
  offer(ways, hadFocus) {
    if (this.data.is_asked) this.part("sentence").append(this.ways);
    else this.part("hint").before(this.ways);
    const shown = JSON.stringify(ways);
    if (this.ways.__shown !== shown) {
      this.ways.__shown = shown;
      this.ways.replaceChildren(...Object.entries(ways).map(([way, words]) => this.way(way, words)));
      this.ways.hidden = !this.ways.children.length;
    }
    if (hadFocus) (this.ways.firstElementChild ?? this.part("play")).focus();
  }

  // The first is the page's own box, all others are Python's.
  way(way, words) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: words });
    button.addEventListener("click", () => {
      // The tab that it opens is below the maps, out of sight.
      if (way === "why") document.querySelector('.stTabs [role="tablist"]')?.scrollIntoView();
      if (way !== "word") return this.setTriggerValue("way", way);
      const box = document.querySelector(".st-key-text :is(input, textarea)");
      box.focus();
      box.select();
    });
    return button;
  }

  // While one guesses, a press on a token is a pin alone: it says what is guessed, or where to go back to.
  strip(name, tokens, act) {
    super.strip(name, tokens, act && this.data.is_guessed ? () => {} : act);
    if (name === "output") this.measures.share(tokens, [...this.part(name).children]);
  }

  say() {
    const hadFocus = this.ways.contains(this.root.getRootNode().activeElement);
    super.say();
    this.part("sentence").append(...this.measures.words(this.data, this.step));
    this.offer(this.data.ways?.[this.step] ?? {}, hadFocus);
  }

  // Escape leaves a field, whose keys are then the player's.
  key(event) {
    if (!this.root.isConnected) return;
    if (isTyping(event)) {
      if (event.key === "Escape") event.composedPath()[0].blur();
    } else super.key(event);
  }

  // Plotly takes a press on a chart for itself, and the browser would leave the focus in the field.
  release(event) {
    const field = document.activeElement;
    if (this.root.isConnected && field?.matches("input, textarea") && event.target.closest?.(".chart")) field.blur();
  }

  // What a question covers is asked for at once, and only once: a second report would bring the boxes of before the answer.
  go(step, how) {
    super.go(step, this.data.is_asked ? { report: false } : how);
    if (this.data.is_asked) this.rested();
  }

  // With `moved` a step that was reported before, from which Python has moved on, is another one.
  rested() {
    this.setStateValue("step", { run: this.run, step: this.step, moved: this.data.moved });
  }

  play() {
    if (this.data.is_guessed) this.go(this.step + 1);
    else super.play();
  }

  get chart() {
    return document.querySelector(".st-key-focus .chart");
  }

  // A figure comes with the step that was current when it was made; the person may be further by now. The chart may also still
  // show the run before, or be there before the words of its run are.
  arrange() {
    if (this.chart?.__drawn?.run === this.run && this.chart.__step !== this.step) this.draw();
  }

  draw() {
    if (this.chart?.__drawn?.run === this.run) this.chart.__go(this.step);
  }
}
