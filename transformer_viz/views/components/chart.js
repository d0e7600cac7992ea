// A chart that stands: another figure is drawn into what is there (charts.js, put before this), where Streamlit's own chart is
// mounted anew and drawn twice.
//
// For who looks from outside: `__drawn` of a `.chart` says whether its figure is there.

const CHARTS = new WeakMap();

export default function ({ parentElement, data, setStateValue }) {
  const host = parentElement.querySelector(".chart");
  if (!CHARTS.has(host)) CHARTS.set(host, new Chart(host));
  const me = CHARTS.get(host);
  me.report = (what) => setStateValue("presses", me.presses = withPress(me.presses, what));
  me.show(new TextDecoder().decode(data));
  // Streamlit also calls this of a chart that stays: of a message that another one overtook while this script was being read.
  return () => host.isConnected || me.end();
}

class Chart {
  constructor(host) {
    this.host = host;
    this.presses = [];
    this.table = new NumbersTable(host);
    this.sizes = new ResizeObserver(() => this.fit());
    this.sizes.observe(host);
    host.addEventListener("pointerdown", (event) => (this.pointer = event), true);
    host.addEventListener("click", (event) => this.placed(event), true);
    host.addEventListener("click", (event) => this.tappedTwice() ? event.stopImmediatePropagation() : this.clicked(event));
  }

  // Every run of the page says what a chart shows; what it shows already is not drawn again.
  async show(text) {
    if (text === this.text) return;
    this.text = text;
    const { figure, ...about } = JSON.parse(text);
    this.about = about;
    this.host.setAttribute("aria-label", about.words);
    this.host.dataset.file = about.file;
    this.host.style.minHeight = `${figure.layout.height ?? 450}px`;
    this.host.classList.toggle("clickable", about.clicks === "cell");
    try {
      await plotlyFrom(about.plotly);
    } catch {
      this.host.textContent = say("plotly.js could not be loaded, so nothing can be drawn. Is the server there? Reload the page.");
      return;
    }
    if (text !== this.text) return;
    this.waiting = figure;
    this.draw();
  }

  // In a closed tab there is no width: what waits is drawn when it is seen.
  async draw() {
    const figure = this.waiting, width = Math.floor(this.host.clientWidth);
    if (!figure || !width) return;
    this.waiting = null;
    this.figure = figure;
    this.width = figure.layout.width = width;
    this.host.__drawn = false;
    await this.react(figure);
    // Another one may have come meanwhile, which says by itself when it is drawn.
    if (figure !== this.figure) return;
    this.host.__drawn = true;
    this.table.show();
    this.pressed?.();
  }

  async react(figure) {
    await drawChart(this.host, figure, [this.about.run, figure.layout.meta?.kind]);
    this.host.removeAllListeners("plotly_click");
    this.host.on("plotly_click", ({ points }) => this.clickedPoint(points[0]));
  }

  fit() {
    const width = Math.floor(this.host.clientWidth);
    if (this.waiting) this.draw();
    else if (this.host.__drawn && width && width !== this.width) {
      this.width = this.figure.layout.width = width;
      window.Plotly.relayout(this.host, { width });
    }
  }

  // A finger's click is made by Plotly, out of a touch event, which has no place: it is made again where the finger was.
  placed(event) {
    if (event.isTrusted || event.clientX || event.clientY || this.pointer?.pointerType !== "touch") return;
    event.stopPropagation();
    const { clientX, clientY } = this.pointer;
    event.target.dispatchEvent(new MouseEvent("click", { clientX, clientY, bubbles: true, composed: true }));
  }

  // Out of one tap come up to three clicks, of the browser and of Plotly: the first one counts, here and in the whole page.
  tappedTwice() {
    const isSame = this.pointer?.pointerType === "touch" && this.pointer === this.tap;
    this.tap = this.pointer;
    return isSame;
  }

  // A click on a figure that is being drawn counts as soon as it is there.
  clicked(event) {
    if (this.about.clicks !== "cell") return;
    this.pressed = () => {
      this.pressed = undefined;
      const cell = areas(this.host).map((area) => cellAt(area, event)).find(Boolean);
      if (cell) this.report(cell);
    };
    if (this.host.__drawn) this.pressed();
  }

  clickedPoint(point) {
    if (this.about.clicks === "point" && Number.isInteger(point?.customdata)) this.report(point.customdata);
  }

  end() {
    this.sizes.disconnect();
    window.Plotly?.purge(this.host);
  }
}

// Resolves once plotly.js is there; `name` is the file that `plotly_js.py` names, beside the page.
function plotlyFrom(name) {
  window.__plotly ??= new Promise((found, failed) => {
    const script = document.createElement("script");
    script.src = name;
    script.onload = () => found(window.Plotly);
    script.onerror = () => {
      window.__plotly = undefined;
      failed(Error(`${name} did not come`));
    };
    document.head.append(script);
  });
  return window.__plotly;
}
