// The bridge between the step player, the focus chart and Python. `Player` is export/page/player.js, put before this.
//
// Stepping happens here: the figure's frames are applied in the browser, no request is made. Once a
// step has rested, it is reported to Python, which writes it into the URL and redraws nothing.

export default function ({ parentElement, data, setStateValue, setTriggerValue }) {
  const root = parentElement.querySelector(".player");
  const me = root.__player ?? (root.__player = new ChartPlayer(root));
  Object.assign(me, { setStateValue, setTriggerValue });
  me.update(data);
  // The charts of this page need no plotly.js, but those of its tabs and of other pages do: it is there once nothing else is done.
  requestIdleCallback(() => plotlyFrom(data.plotly).catch(() => {}));
  me.arrange();
  // Likewise chart.js.
  return () => root.isConnected || me.pause();
}

class ChartPlayer extends Player {
  constructor(root) {
    super(root);
    this.highlight = new Highlight(this, (pin) => this.setStateValue("pin", pin));
    this.highlight.lines.button.addEventListener("click", () => this.switchLines());
    this.measures = new Measures(root, (chosen) => this.setTriggerValue("measure", chosen));
    document.addEventListener("chart-drawn", (event) => {
      if (root.isConnected && event.target.closest(".st-key-focus")) this.stands(event.target);
    });
    document.addEventListener("pointerdown", (event) => this.release(event));
  }

  update(data) {
    this.isMoving = false;
    super.update(data);
    this.measures.show(data);
    const { run, step, linked } = data;
    document.dispatchEvent(new CustomEvent("place-noted", { detail: { run, step, pin: linked?.pin ?? [] } }));
  }

  strip(name, tokens, act) {
    super.strip(name, tokens, act);
    if (name === "output") this.highlight.update(this.data);
    if (name === "output") this.measures.share(tokens, [...this.part(name).children]);
  }

  go(step, options) {
    this.isMoving = true;
    super.go(step, options);
  }

  say() {
    super.say();
    this.part("sentence").append(...pieces(this.highlight.words()), ...this.measures.words(this.data, this.step));
    this.highlight.show({ moves: this.isMoving });
  }

  switchLines() {
    const { lines } = this.highlight, chosen = lines.isOn ? "off" : "on";
    lines.choose(chosen);
    this.say();
    this.setStateValue("lines", chosen);
  }

  // Escape leaves a field, whose keys are then the player's.
  key(event) {
    if (!this.root.isConnected) return;
    if (isTyping(event)) {
      if (event.key === "Escape") event.composedPath()[0].blur();
    } else if (!this.highlight.key(event)) super.key(event);
  }

  // Plotly takes a press on a chart for itself, and the browser would leave the focus in the field.
  release(event) {
    const field = document.activeElement;
    if (this.root.isConnected && field?.matches("input, textarea") && event.target.closest?.(".chart")) field.blur();
  }

  rested() {
    this.setStateValue("step", { run: this.run, step: this.step });
  }

  get chart() {
    return document.querySelector(".st-key-focus .chart");
  }

  // A figure comes with the step that was current when it was made; the person may be further by now.
  stands(chart) {
    chart.__step = chart.__drawn.step;
    this.arrange();
  }

  // The chart may still show the run before, or be there before the words of its run are.
  arrange() {
    if (this.chart?.__drawn?.run === this.run && this.chart.__step !== this.step) this.draw();
  }

  draw() {
    const chart = this.chart, frame = chart?.__frames?.[this.step];
    if (chart?.__drawn?.run !== this.run || !frame) return;
    chart.__step = this.step;
    apply(frame, chart);
  }
}

// A frame, in one drawing: `Plotly.animate` would compute and draw everything, and then once more.
async function apply(frame, chart) {
  if (chart.__picture) chart.__picture.update(frame);
  else await updated(frame, chart);
  chart.dispatchEvent(new CustomEvent("step-drawn"));
}

function updated(frame, chart) {
  const each = frame.data.map(({ type, ...changes }) => flat(changes));
  const names = new Set(each.flatMap(Object.keys));
  const changes = Object.fromEntries([...names].map((name) => [name, each.map((one) => one[name])]));
  return window.Plotly.update(chart, changes, flat(frame.layout ?? {}), frame.traces);
}

// {a: {b: 1}} -> {"a.b": 1}; arrays, also those of bytes, stay whole.
function flat(changes, above = "") {
  return Object.fromEntries(Object.entries(changes).flatMap(([name, value]) => {
    const isWhole = value === null || typeof value !== "object" || Array.isArray(value) || ArrayBuffer.isView(value) || "bdata" in value;
    return isWhole ? [[above + name, value]] : Object.entries(flat(value, `${above}${name}.`));
  }));
}
