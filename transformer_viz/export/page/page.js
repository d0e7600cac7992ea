// The exported page: one run, its focus, and what is redrawn when the focus or the step moves.

const NARROW_PX = 640;

let run, kinds;
const part = (name) => document.querySelector(`[data-part="${name}"]`);
const box = (name) => document.querySelector(`[data-box="${name}"]`);

class Page extends Player {
  constructor(data) {
    super(document.querySelector(".player"));
    this.take(data);
    this.focus = { ...run.focus };
    this.step = run.focus.step;
    this.run = "this";
    this.aligned = run.aligner ? new Aligned(run.aligner) : null;
    this.highlight = new Highlight(this, () => [part("focus"), ...part("mosaics").children]);
    this.readHash();
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.theme = run.theme;
    part("mosaics").append(...Object.keys(kinds).map((name) => this.mosaicOf(name)));
    document.documentElement.classList.toggle("large", run.large);
    this.fillBoxes();
    this.listen();
    this.show();
    this.restyle();
  }

  // The run that is shown.
  take(data) {
    run = data;
    kinds = Object.fromEntries(Object.entries(run.kinds).map(([name, data]) => [name, data instanceof Kind ? data : new Kind(data)]));
    document.title = part("title").textContent = run.title;
    part("made").textContent = [run.title, ...run.made, `Transformer Viz ${run.version}`].join(" · ");
    part("best").textContent = run.best ?? "";
    part("best").hidden = !run.best;
  }

  get isDark() {
    return this.theme === "auto" ? this.dark.matches : this.theme === "dark";
  }

  listen() {
    for (const name of ["kind", "layer", "head"]) box(name).addEventListener("change", () => this.boxChanged(name));
    part("theme").addEventListener("click", () => {
      this.theme = this.isDark ? "light" : "dark";
      this.restyle();
    });
    this.dark.addEventListener("change", () => this.restyle());
    for (const name of ["masks", "numbers"]) part(name).addEventListener("toggle", () => this.drawOpened());
    let waits;
    window.addEventListener("resize", () => {
      clearTimeout(waits);
      waits = setTimeout(() => this.draw(), 120);
    });
    window.addEventListener("hashchange", () => {
      if (this.readHash()) this.show();
    });
  }

  // ---- the focus

  choose(kind, layer, head) {
    this.focus = { kind, layer, head };
    this.show();
    this.rested();
  }

  boxChanged(name) {
    const value = box(name).value;
    if (name === "kind") this.choose(value, 0, 0);
    else if (name === "layer") this.choose(this.focus.kind, Number(value), this.focus.head);
    else this.choose(this.focus.kind, this.focus.layer, /^\d+$/.test(value) ? Number(value) : value);
  }

  fillBoxes() {
    fill(box("kind"), Object.entries(kinds).map(([name, kind]) => [name, kind.title]));
  }

  // Everything that depends on kind, layer and head.
  show() {
    const { kind: name, layer, head } = this.focus;
    const kind = kinds[name];
    fill(box("layer"), kind.numbers.map((number, place) => [place, `layer ${number + 1}`]));
    const heads = Array.from({ length: kind.heads }, (_, n) => [n, `head ${n + 1}`]);
    fill(box("head"), [...heads, ["mean", "mean of heads"], ["max", "max of heads"]]);
    box("kind").value = name;
    box("layer").value = String(layer);
    box("head").value = String(head);
    const sentences = this.sentences(kind);
    this.update({
      run: this.run,
      step: this.step,
      hint: [["plain", kind.legend]],
      labels: run.labels,
      grows: run.grows,
      large: run.large,
      dark: this.isDark,
      source: run.source,
      output: run.output,
      prompt: run.prompt,
      first: run.first,
      answer: run.answer,
      linked: { ...kind.linked, aligner: run.aligner, pinsAll: Boolean(run.aligner), lines: run.aligner ? "on" : "off" },
      sentences,
      looked: sentences.map((_, step) => (this.aligned ? this.aligned.best(step) : kind.lookedAt(layer, head, step))),
    });
    part("focus").setAttribute("aria-label",
      `${kind.title}, ${kind.names[layer][kind.headNumber(head)]}: ${kind.rows} query rows by ${kind.columns} key columns, ` +
      "and the candidates of this step. The sentence above says it.");
    this.draw();
  }

  // What each step says of the focus, as pieces.
  sentences(kind) {
    const { layer, head } = this.focus;
    return kind.sentencesOf(layer, head).map((numbers) => numbers.map((number) => run.pieces[number]));
  }

  // All rows, of which the chart has those of the steps that were.
  weights() {
    const { layer, head } = this.focus, kind = kinds[this.focus.kind], { rows, columns } = kind;
    const weights = kind.weightsOf(layer, head), reasons = kind.reasonsOf(layer, head);
    const at = (query, key) => weights[query * columns + key], isMasked = (query, key) => reasons[query * columns + key] > 0;
    const words = (query, key) => (isMasked(query, key) ? "masked" : weightWords(at(query, key)));
    return { shape: [rows, columns], at, isMasked, words };
  }

  // ---- what is drawn

  mosaicOf(name) {
    const chart = element("div", "chart"), { title, numbers } = kinds[name];
    chart.setAttribute("role", "figure");
    chart.setAttribute("aria-label", `Layers and heads of the ${title}. Choose one with the layer and head boxes.`);
    chart.addEventListener("click", (event) => {
      const [layer, head] = tileAt(chart, event) ?? [];
      if (head !== undefined) this.choose(name, numbers.indexOf(layer), head);
    });
    return chart;
  }

  // The colour that stands for each one of the templates, which are for a light page.
  get darkened() {
    return this.isDark ? run.dark : {};
  }

  get colours() {
    return recoloured(run.colours, this.darkened);
  }

  drawMosaics() {
    Object.entries(kinds).forEach(([name, { numbers }], place) => {
      const chart = part("mosaics").children[place];
      const looks = JSON.stringify([this.run, this.isDark, name === this.focus.kind && this.focus]);
      if (chart.__looks === looks) return;
      chart.__looks = looks;
      const figure = this.mosaicFigure(kinds[name]), { layer, head } = this.focus;
      const isOn = (tile) => tile.layer === numbers[layer] && (tile.head === head || !Number.isInteger(head));
      this.drawLinked(chart, name === this.focus.kind ? outlined(figure, isOn, this.colours) : figure, name);
    });
  }

  mosaicFigure({ mosaic }) {
    return recoloured(mosaic, this.darkened);
  }

  // The large map's figure without its numbers.
  focusParts({ picture: { wide, narrow, ...parts } }, isNarrow) {
    return recoloured({ ...parts, ...(isNarrow ? narrow : wide) }, this.darkened);
  }

  async drawLinked(chart, figure, kind) {
    await drawChart(chart, figure, kind);
    chart.__drawn = { run: this.run, kind };
    this.highlight.show();
  }

  restyle() {
    document.documentElement.dataset.theme = this.isDark ? "dark" : "light";
    this.root.classList.toggle("dark", this.isDark);
    this.draw();
  }

  draw() {
    if (!window.Plotly) return;
    const kind = kinds[this.focus.kind];
    const isNarrow = window.innerWidth < NARROW_PX;
    const looks = `${this.run} ${this.focus.kind} ${this.isDark} ${isNarrow}`;
    if (this.looks !== looks) {
      this.looks = looks;
      this.parts = this.focusParts(kind, isNarrow);
    }
    const figure = focusFigure(kind, { ...this.focus, step: this.step }, this.parts, run, this.colours);
    this.drawLinked(part("focus"), figure, this.focus.kind);
    this.drawMosaics();
    this.drawOpened();
  }

  drawOpened() {
    if (part("masks").open && window.Plotly) this.drawMasks();
    if (part("numbers").open) this.listNumbers();
  }

  drawMasks() {
    const { layer, head } = this.focus;
    const looks = JSON.stringify([this.run, this.focus, this.isDark]);
    if (this.masksShown === looks) return;
    this.masksShown = looks;
    const room = part("masks").querySelector(".masks");
    if (!room.children.length) room.append(...Object.keys(kinds).map(() => element("div", "mask")));
    Object.values(kinds).forEach((kind, place) => {
      const one = Number.isInteger(head) ? head : 0;
      const own = { layer: Math.min(layer, kind.layers - 1), head: Math.min(one, kind.heads - 1) };
      drawChart(room.children[place], maskFigure(kind, own, this.darkened));
    });
  }

  // The weights of this step's row as text, for eyes and screen readers.
  listNumbers() {
    const { kind: name, layer, head } = this.focus;
    const kind = kinds[name], row = Math.min(this.step, kind.rows - 1);
    const weights = kind.weightsOf(layer, head), reasons = kind.reasonsOf(layer, head);
    const list = element("dl");
    kind.linked.keys.forEach((label, column) => {
      const line = element("div"), i = row * kind.columns + column;
      line.append(element("dt", "", label), element("dd", "", reasons[i] ? "masked" : exact(weights[i])));
      list.append(line);
    });
    const called = kind.names[layer][kind.headNumber(head)];
    const words = `${kind.title}, ${called}, row ${kind.linked.rows[row]}: its weight on each key`;
    part("numbers").querySelector(".numbers").replaceChildren(element("p", "", words), list);
  }

  // ---- the address: what the page shows, counted from 1, where it has one

  rested() {
    if (location.protocol !== "about:") history.replaceState(null, "", `#${new URLSearchParams(this.address())}`);
  }

  address() {
    const { kind, layer, head } = this.focus;
    return {
      kind, layer: kinds[kind].numbers[layer] + 1, head: Number.isInteger(head) ? head + 1 : head, step: this.step + 1,
    };
  }

  readHash() {
    const words = new URLSearchParams(location.hash.slice(1));
    const number = (key, most) => {
      const said = /^\d{1,4}$/.test(words.get(key)) ? Number(words.get(key)) : 0;
      return said >= 1 && said <= most ? said - 1 : null;
    };
    if (!Object.hasOwn(kinds, words.get("kind"))) return false;
    const kind = kinds[words.get("kind")];
    const layer = Math.max(0, kind.numbers.indexOf(number("layer", 9999)));
    const head = ["mean", "max"].includes(words.get("head")) ? words.get("head") : number("head", kind.heads) ?? 0;
    this.focus = { kind: words.get("kind"), layer, head };
    this.step = number("step", this.sentences(kind).length) ?? this.step;
    return true;
  }
}

// A mosaic with a strong frame around some of its tiles, whose captions have its colour; the thin frames and the captions are
// the last of its traces.
function outlined({ data, layout }, isOn, { accent, muted }) {
  const tiles = tilesOf(layout.meta), [frames, captions] = data.slice(-2);
  const corners = tiles.filter(isOn).map(({ x, y, columns, rows }) => [x - 0.5, x + columns - 0.5, y - 0.5, y + rows - 0.5]);
  const strong = {
    ...frames,
    line: { color: accent, width: 2.5 },
    x: corners.flatMap(([left, right]) => [left, right, right, left, left, null]),
    y: corners.flatMap(([, , top, bottom]) => [top, top, bottom, bottom, top, null]),
  };
  const named = { ...captions, textfont: { ...captions.textfont, color: tiles.map((tile) => (isOn(tile) ? accent : muted)) } };
  return { data: [...data.slice(0, -1), strong, named], layout };
}

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Six places; a small weight keeps its digits and is never rounded to nothing.
function exact(weight) {
  return weight > 0 && weight < 1e-4 ? weight.toExponential(3) : weight.toFixed(6);
}

function fill(select, options) {
  if (select.dataset.filled === String(options)) return;
  select.dataset.filled = String(options);
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
}

// Draws a page as soon as plotly.js is there, or says that it is missing.
async function start(page) {
  await (window.plotlyReady ?? Promise.resolve()).catch(() => {});
  if (window.Plotly) {
    page.draw();
    return;
  }
  part("missing").hidden = false;
  part("missing").textContent =
    "plotly.min.js is not where this page looks for it, so the maps cannot be drawn. Everything else works.";
}
