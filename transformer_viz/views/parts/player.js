// The bridge between the step player, the focus chart and Python. `Player` is export/page/player.js, put before this.
//
// Stepping happens here: the figure's frames are applied in the browser, no request is made. Once a
// step has rested, it is reported to Python, which writes it into the URL and redraws nothing.

export default function ({ parentElement, data, setStateValue }) {
  const root = parentElement.querySelector(".player");
  const me = root.__player ?? (root.__player = new ChartPlayer(root));
  me.setStateValue = setStateValue;
  me.update(data);
  loadAhead(data.plotly);
  me.attach();
  return () => me.pause();
}

// Streamlit asks for plotly.js with the first chart. Once the text is painted, the browser can as well load and evaluate it.
function loadAhead(name) {
  const entry = document.querySelector('script[type=module][src*="/static/js/"]');
  if (!name || !entry || window.__plotlyAsked) return;
  window.__plotlyAsked = true;
  requestAnimationFrame(() => setTimeout(() => import(new URL(name, entry.src)).catch(() => {})));
}

class ChartPlayer extends Player {
  constructor(root) {
    super(root);
    // Streamlit redraws charts on its own schedule; a chart that appears or is redrawn is attached again.
    new MutationObserver(oncePerFrame(() => this.attach())).observe(document.body, { childList: true, subtree: true });
  }

  rested() {
    this.setStateValue("step", { run: this.run, step: this.step });
  }

  attach() {
    const chart = chartIn("st-key-focus");
    if (chart && this.chart !== chart) {
      this.chart = chart;
      chart.on("plotly_afterplot", () => this.arrange());
    }
    if (chart) this.arrange();
  }

  // The figure comes with the step that was current when it was made; the person may be further by now.
  draw() {
    const chart = this.chart, frame = chart?._transitionData?._frameHash?.[this.step];
    if (!chart?.isConnected || !window.Plotly || !frame) return;
    chart.__step = this.step;
    apply(frame, chart);
  }

  // A redrawn figure stands at the step that was current when it was made.
  arrange() {
    const meta = this.chart?.layout?.meta?.[0];
    if (!meta) return;
    if (this.chart.__figure !== meta.id) {
      this.chart.__figure = meta.id;
      this.chart.__step = meta.step;
    }
    if (this.chart.__step !== this.step && meta.run === this.run) this.draw();
  }
}

// What `Plotly.animate` does with a frame, in one drawing: it would compute and draw everything, and then once more.
// Streamlit keeps a chart's state when it hears that it was animated, and draws that state when the window changes.
async function apply(frame, chart) {
  const each = frame.data.map(({ type, ...changes }) => flat(changes));
  const names = new Set(each.flatMap(Object.keys));
  const changes = Object.fromEntries([...names].map((name) => [name, each.map((one) => one[name])]));
  await window.Plotly.update(chart, changes, flat(frame.layout ?? {}), frame.traces);
  chart.emit("plotly_animated");
}

// {a: {b: 1}} -> {"a.b": 1}; arrays, also those of bytes, stay whole.
function flat(changes, above = "") {
  return Object.fromEntries(Object.entries(changes).flatMap(([name, value]) => {
    const isWhole = value === null || typeof value !== "object" || Array.isArray(value) || ArrayBuffer.isView(value) || "bdata" in value;
    return isWhole ? [[above + name, value]] : Object.entries(flat(value, `${above}${name}.`));
  }));
}

// Drawing one chart changes the page a thousand times; one look a frame is enough.
function oncePerFrame(act) {
  let waits = false;
  return () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      act();
    });
  };
}

function chartIn(key) {
  const chart = document.querySelector(`.${key} .js-plotly-plot`);
  return chart?.on ? chart : null;
}
