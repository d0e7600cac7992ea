// A chart that stands: another figure is drawn into what is there, on a canvas of ours (picture.js) or by `Plotly.react`, which
// draws only what differs, where Streamlit's own chart is mounted anew and drawn twice.
//
// Others find it as `.chart`. `__drawn` is null while a figure is being drawn, then {run, ...layout.meta}; the event
// `chart-drawn` says when.

export default function ({ parentElement, data, setTriggerValue }) {
  const host = parentElement.querySelector(".chart");
  const me = host.__chart ?? (host.__chart = new Chart(host));
  me.report = (what) => what !== null && setTriggerValue("click", what);
  me.show(new TextDecoder().decode(data));
  // Streamlit also calls this of a chart that stays: of a message that another one overtook while this script was being read.
  return () => host.isConnected || me.end();
}

class Chart {
  constructor(host) {
    this.host = host;
    this.sizes = new ResizeObserver(() => this.fit());
    this.sizes.observe(host);
    host.addEventListener("pointerdown", (event) => (this.pointer = event), true);
    host.addEventListener("click", (event) => this.placed(event), true);
    host.addEventListener("click", (event) => this.clicked(event));
    this.walk = new Walk(host, (point, place) => this.pressed(point, place));
  }

  // Every run of the page says what a chart shows; what it shows already is not drawn again.
  async show(text) {
    if (text === this.text) return;
    this.text = text;
    const { figure, ...about } = JSON.parse(text);
    this.about = about;
    this.host.setAttribute("aria-label", about.words);
    this.host.style.minHeight = `${figure.layout.height ?? 450}px`;
    this.host.style.cursor = ["tile", "cell"].includes(about.clicks) ? "pointer" : "";
    if (!about.painted) {
      try {
        await plotlyFrom(about.plotly);
      } catch {
        this.host.textContent = "plotly.js could not be loaded, so nothing can be drawn. Is the server still there? Reload the page.";
        return;
      }
      if (text !== this.text) return;
    }
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
    this.host.__drawn = null;
    if (this.about.painted) (this.host.__picture ??= new Picture(this.host)).show(figure, width);
    else await window.Plotly.react(this.host, figure.data, figure.layout, this.about.config);
    // Another one may have come meanwhile, which says by itself when it is drawn.
    if (figure !== this.figure) return;
    this.host.__frames = Object.fromEntries((figure.frames ?? []).map((frame) => [frame.name, frame]));
    this.host.__drawn = { run: this.about.run, ...figure.layout.meta };
    this.host.dispatchEvent(new CustomEvent("chart-drawn", { bubbles: true, composed: true }));
  }

  fit() {
    const width = Math.floor(this.host.clientWidth);
    if (this.waiting) this.draw();
    else if (this.host.__drawn && width && width !== this.width) this.widen(width);
  }

  widen(width) {
    this.width = width;
    if (this.about.painted) this.host.__picture.show(this.figure, width);
    else window.Plotly.relayout(this.host, { width });
  }

  // A finger's click is made by Plotly, out of a touch event, which has no place: it is made again where the finger was.
  placed(event) {
    if (event.isTrusted || event.clientX || event.clientY || this.pointer?.pointerType !== "touch") return;
    event.stopPropagation();
    const { clientX, clientY } = this.pointer;
    event.target.dispatchEvent(new MouseEvent("click", { clientX, clientY, bubbles: true, composed: true }));
  }

  clicked(event) {
    const find = CLICKED[this.about.clicks];
    if (find && this.host.__drawn) this.report(find(this.host, event));
  }

  // The keyboard's click.
  pressed(point, place) {
    if (this.about.clicks === "point") this.report(Number.isInteger(point) ? point : null);
    else if (place) this.host.dispatchEvent(new MouseEvent("click", { ...place, bubbles: true }));
  }

  end() {
    this.sizes.disconnect();
    this.host.__picture ? this.host.__picture.end() : window.Plotly?.purge(this.host);
  }
}
