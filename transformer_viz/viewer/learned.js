// @ts-check
// One text at each moment of a training: what the model writes then, a head's map, its way, the candidates of a position, and all
// small maps. It is to its page what a viewer is; its player goes through moments.
import { choose, fill, hear } from "./boxes.js";
import { hearTiles } from "./cells.js";
import { say } from "./language.js";
import { LinkedChart, standing } from "./linked.js";
import { withMarks } from "./map.js";
import { caption, circle, mark, rectangle } from "./marks.js";
import { Kind } from "./numbers.js";
import { playbackFigure, withNow } from "./playback.js";
import { Player, REST_MS } from "./player.js";
import { focusOf, outlined } from "./smallmaps.js";

const NOW_PX = 6;

class MomentsPlayer extends Player {
  /** @type {(why: string) => void} */
  stepped = () => {};

  go(step) {
    const before = this.step;
    super.go(step);
    if (this.step !== before) this.stepped(this.timers.play ? "play" : "step");
  }
}

export class Learned {
  #ends = new AbortController();
  /** @type {any} */
  #run = null;
  /** @type {Record<string, any>} */
  #kinds = {};
  /** Numbers count from 0, and a layer is called by its own; a moment is called by its step of training. @type {any} */
  #place = { kind: "", layer: 0, head: 0, moment: 0, position: 0 };
  #looks = { dark: false, large: false };
  /** @type {Record<string, LinkedChart>} */
  #maps = {};
  /** @type {Record<string, LinkedChart>} */
  #small = {};
  /** @type {any} */
  #rests;

  /**
   * @param {HTMLElement} root
   * @param {Record<string, any>} on as of `Viewer`
   */
  constructor(root, on) {
    this.root = root;
    this.on = on;
    this.player = new MomentsPlayer(root.querySelector(".player"), this.#ends.signal);
    this.player.stepped = (why) => this.set({ moment: this.#run.moments[this.player.step] }, why);
    this.boxes = Object.fromEntries(["kind", "layer", "head", "position"].map((name) => [name, root.querySelector(`[data-box="${name}"]`)]));
    hear(this.boxes, (name, value) => this.set({ [name]: value }, name));
  }

  /**
   * @param {any} run as `views/train/picture.py` makes it, all of it in the page's theme
   * @param {Record<string, any>} [start]
   */
  show(run, start = {}) {
    const isOther = run !== this.#run, before = JSON.stringify(this.state);
    if (isOther) this.#take(run);
    this.#go({ ...this.#place, ...start }, isOther || before !== JSON.stringify({ ...this.state, ...start }));
  }

  set(change, why) {
    const before = JSON.stringify(this.#place);
    this.#go({ ...this.#place, ...change });
    if (before !== JSON.stringify(this.#place)) this.on.heard?.(this.state, why);
  }

  get state() {
    return { run: this.#run?.run ?? "", ...this.#place };
  }

  get isAwaited() {
    return false;
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  restyle(looks) {
    this.#looks = { ...this.#looks, ...looks };
    for (const [name, isOn] of Object.entries(this.#looks)) this.root.classList.toggle(name, isOn);
    this.draw();
  }

  end() {
    clearTimeout(this.#rests);
    this.player.pause();
    this.#ends.abort();
    for (const { host } of this.#charts) window.Plotly?.purge(host);
  }

  // ---- the run and the state

  get #charts() {
    return [...Object.values(this.#maps), ...Object.values(this.#small)];
  }

  // The place of the moment among all.
  get #moment() {
    return this.#run.moments.indexOf(this.#place.moment);
  }

  // As a figure wants it, of a kind that is not in focus its first head.
  #placeIn(name) {
    const { kind, layer, head, position } = this.#place, { numbers } = this.#kinds[name];
    const place = kind === name ? { layer: numbers.indexOf(layer), head } : { layer: 0, head: 0 };
    return { ...place, moment: this.#moment, position };
  }

  #take(run) {
    this.#run = run;
    this.#kinds = Object.fromEntries(Object.entries(run.kinds).map(([name, data]) => [name, new Kind(data, run.pieces)]));
    const names = Object.keys(this.#kinds), marks = (chart) => this.#mark(chart);
    this.#maps = standing(this.#maps, names, this.part("maps"), (name) => new LinkedChart(this.#room(name), marks));
    this.#small = standing(this.#small, names, this.part("mosaics"), (name) => new LinkedChart(this.#smallRoom(name), marks));
  }

  #room(name) {
    const host = Object.assign(document.createElement("div"), { className: "chart" });
    host.setAttribute("role", "figure");
    host.dataset.kind = name;
    return host;
  }

  #smallRoom(name) {
    const host = this.#room(name);
    host.setAttribute("aria-label", say("Layers and heads of the {kind}. Choose one with the layer and head boxes.", { kind: this.#kinds[name].title }));
    hearTiles(host, ([layer, head]) => this.set({ kind: name, layer, head }, "tile"));
    return host;
  }

  // The place nearest to this one that there is.
  #go({ kind: wanted, layer, head, moment, position }, isNew = true) {
    const { moments, rows } = this.#run, names = Object.keys(this.#kinds), kind = names.includes(wanted) ? wanted : names.at(-1);
    const { numbers, heads } = this.#kinds[kind], near = (n, most) => (Number.isInteger(n) ? Math.max(0, Math.min(most - 1, n)) : 0);
    this.#place = {
      kind, layer: numbers.includes(layer) ? layer : numbers[0], head: near(head, heads),
      moment: moments.includes(moment) ? moment : moments.at(-1), position: near(position, rows.length),
    };
    if (!isNew) return;
    this.#say();
    this.draw();
  }

  // Everything in words that depends on the place.
  #say() {
    const run = this.#run, { kind: name, layer, head, position } = this.#place, kind = this.#kinds[name];
    const place = kind.numbers.indexOf(layer), step = this.#moment;
    fill(this.boxes.kind, Object.entries(this.#kinds).map(([each, { title }]) => [each, title]));
    fill(this.boxes.layer, kind.numbers.map((number) => [number, say("layer {layer}", { layer: number + 1 })]));
    fill(this.boxes.head, Array.from({ length: kind.heads }, (_, n) => [n, say("head {head}", { head: n + 1 })]));
    fill(this.boxes.position, run.rows.map((words, n) => [n, words]));
    for (const each of Object.keys(this.boxes)) choose(this.boxes[each], String(this.#place[each]));
    const { source, output, answers, written, labels, terms } = run, looked = run.moments.map((_, m) => kind.by(String(m)).lookedAt(place, head, position));
    this.player.step = step;
    this.player.update({
      run: run.run, step, hint: kind.hint, terms, labels, ...this.#looks, source, output, answers, written,
      sentences: kind.sentencesOf(place, head), looked, isStage: false,
    });
    this.part("when").textContent = run.when[step];
    this.#maps[name].host.setAttribute("aria-label",
      say("{kind} of the focus head at this moment of training, every head's way through the training, and the candidates of one position. The sentence above describes it.", { kind: kind.title }));
  }

  // ---- what is drawn

  /** Draws what is not there yet, as when plotly.js has come. */
  draw() {
    clearTimeout(this.#rests);
    if (!window.Plotly || !this.#run) return;
    for (const [name, { host }] of Object.entries(this.#maps)) {
      const isHere = name === this.#place.kind;
      if (isHere) host.dataset.part = "focus";
      else delete host.dataset.part;
      host.ariaHidden = isHere ? null : "true";
    }
    this.#show(this.#place.kind, this.#maps, (name) => this.#mapOf(name));
    for (const name of Object.keys(this.#small)) this.#show(name, this.#small, (each) => this.#smallOf(each));
    this.#rests = setTimeout(() => this.#drawAtRest(), REST_MS);
  }

  // As a sketch where Plotly has drawn another moment or head of it.
  #show(name, charts, figureOf) {
    const chart = charts[name];
    if (!chart.has(this.#version)) return void this.#drawChart(name, charts, figureOf);
    if (chart.shown !== this.#told(name, charts)) chart.paint(figureOf(name));
    chart.shown = this.#told(name, charts);
    this.#mark(chart);
  }

  // What a chart's numbers are of.
  #told(name, charts) {
    return charts === this.#small ? String(this.#moment) : JSON.stringify(this.#placeIn(name));
  }

  get #version() {
    return `${this.#run.run} ${this.#run.version}`;
  }

  // Plotly draws when nobody has pressed for a while, a chart at a time.
  #drawAtRest() {
    const isLate = ([name, charts]) => charts[name].isLate || charts[name].shown !== this.#told(name, charts);
    const names = Object.keys(this.#kinds), { kind } = this.#place;
    const all = [[kind, this.#maps], ...names.map((name) => [name, this.#small]), ...names.map((name) => [name, this.#maps])];
    const late = all.find(isLate);
    if (!late) return;
    void this.#drawChart(late[0], late[1], (name) => (late[1] === this.#small ? this.#smallOf(name) : this.#mapOf(name)));
    this.#rests = setTimeout(() => this.#drawAtRest());
  }

  async #drawChart(name, charts, figureOf) {
    const chart = charts[name], figure = figureOf(name), { kind, layer, head } = this.#place, isSmall = charts === this.#small;
    chart.shown = this.#told(name, charts);
    const ofSmall = () => (name === kind ? outlined(figure, { layer, head }, this.#run.colours) : figure);
    const ofMap = () => withNow({ ...withMarks(figure), marks: figure.marks }, this.#kinds[name].picture.ways);
    await chart.draw(figure, { run: this.#run.run, kind: name }, this.#version, isSmall ? ofSmall : ofMap);
    if (!isSmall && name === this.#place.kind) this.on.drawn?.(chart.host);
  }

  #mapOf(name) {
    return playbackFigure(this.#kinds[name], this.#placeIn(name), this.#run);
  }

  #smallOf(name) {
    return this.#kinds[name].by(String(this.#moment)).mosaic;
  }

  // ---- what is marked over a chart: the framed row, rings, where the head stands now, the tile in focus

  #mark(chart) {
    if (!chart.wanted || !chart.places?.xy) return;
    if (chart.wanted.marks) this.#markMap(chart);
    else this.#markTiles(chart);
  }

  #markMap({ host, places: { xy: place, x2y2: course }, wanted: { marks: { row, rings, now }, layout } }) {
    const { position } = this.#place, { accent, muted, paper } = this.#run.colours, { color } = rings.marker.line, radius = rings.marker.size / 2;
    const box = row && rectangle(place.right(row.x[0]), place.down(row.y[0]), place.right(row.x[1]), place.down(row.y[2]));
    mark(host, "row", box || "", row ? { stroke: row.line.color, "stroke-width": row.line.width } : {});
    const around = (isNow) => rings.x.flatMap((key, i) => ((rings.y[i] === position) === isNow ? [circle(place.right(key), place.down(rings.y[i]), radius)] : []));
    mark(host, "rings", around(false).join(""), { stroke: color, "stroke-width": 1.5 });
    mark(host, "ring", around(true).join(""), { stroke: color, "stroke-width": 3 });
    const x = course.right(now.moment), y = course.down(now.value);
    mark(host, "now", `M${x} ${course.down(0)}V${course.down(1)}`, { stroke: muted, "stroke-width": 1 });
    mark(host, "dot", now.words ? circle(x, y, NOW_PX) : "", { fill: accent, stroke: paper, "stroke-width": 2 });
    const { size } = this.#kinds[this.#place.kind].picture.ways.now.textfont, side = now.isLeft ? -1 : 1;
    const said = now.words ? [[x + side * (NOW_PX + 3), y + (now.isBelow ? 1 : -1) * size * 0.9, now.words]] : [];
    caption(host, said, { color: accent, size, family: layout.font.family, ground: layout.paper_bgcolor }, now.isLeft ? "end" : "start");
  }

  #markTiles({ host, places: { xy: place }, wanted, drawn }) {
    const { layer, head, kind } = this.#place, isHere = drawn?.kind === kind, { accent } = this.#run.colours;
    const { boxes, words, font, width } = focusOf(wanted, { layer, head }), { font: { family }, paper_bgcolor: ground } = wanted.layout;
    const at = ([left, top, right, bottom]) => rectangle(place.right(left), place.down(top), place.right(right), place.down(bottom));
    mark(host, "tile", isHere ? boxes.map(at).join("") : "", { stroke: accent, "stroke-width": width });
    const said = isHere ? words.map(([x, y, text]) => [place.right(x), place.down(y), text]) : [];
    caption(host, said, { color: accent, size: font.size, family, ground });
  }
}
