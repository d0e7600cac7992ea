// @ts-check
// Linked pointing: what is pointed at, or pinned, is marked wherever it is: token, row, column, cell, tile, candidate.
import { Aligned, weightWords } from "./aligned.js";
import { unpacked } from "./arrays.js";
import { areasOf, inKind, isSame, MARGIN_PX, placeOnMap, placeOnTile, tilesOn } from "./cells.js";
import { later, say, saySentence } from "./language.js";
import { Lines, strongLooks, withCrossings } from "./lines.js";
import { mark, unmark } from "./marks.js";
import { plainText } from "./sentence.js";

// Who has a chart: `host` is its element; `seen` is {run, kind} of what it shows, and `drawn` the same once it is done with it, null
// while another figure is being drawn; `frames` are those of its figure, where it has any.
export class Pointing {
  // `charts` gives the large map and the small ones; `report` is told what is pinned, and whether there are lines. All ends with
  // the signal.
  constructor(player, charts, report = () => {}, signal = undefined) {
    Object.assign(this, { player, root: player.root, charts, report });
    this.strips = { source: player.part("source"), output: player.part("output") };
    this.pointed = this.pinned = null;
    this.pins = 0;
    this.lines = new Lines(this.root);
    this.lines.box.addEventListener("change", () => this.chooseLines(this.lines.box.value));
    for (const name of ["pointerover", "focusin"]) this.root.addEventListener(name, (event) => this.pointToken(event));
    for (const name of ["pointerleave", "focusout"]) this.root.addEventListener(name, () => this.point(null));
    this.root.addEventListener("click", (event) => this.pin(this.placeOfToken(event)));
    document.addEventListener("pointermove", (event) => this.isHere && this.pointOnChart(event), { signal });
    document.addEventListener("pointerdown", (event) => { this.pointer = event; }, { signal, capture: true });
    document.addEventListener("click", (event) => this.isHere && this.clickOnChart(event), { signal });
    const sizes = new ResizeObserver(() => this.isHere && this.resized());
    sizes.observe(this.root);
    signal?.addEventListener("abort", () => sizes.disconnect());
  }

  // The player of a training has no such marks: its steps are no rows.
  get isHere() {
    return this.root.isConnected && Boolean(this.about);
  }

  // Like the step, what is pinned is further here than in Python, but for another run or another kind, and where a box pinned
  // it.
  update({ linked, run }) {
    const isOther = !linked || ["kind", "boxed"].some((name) => this.about?.[name] !== linked[name]) || this.run !== run;
    this.about = linked;
    this.run = run;
    this.aligned = linked?.aligner ? new Aligned(linked.aligner) : null;
    this.lines.offer(linked);
    if (isOther) {
      const [query, key] = linked?.pin ?? [];
      this.pointed = null;
      this.pinned = linked?.pin.length ? { kind: linked.kind, query, key } : null;
    }
    [...this.tokens("source")].forEach((cell, place) => {
      if (cell.role === "button") return;
      cell.role = "button";
      // One stop for Tab; the arrows go on from it.
      cell.tabIndex = place ? -1 : 0;
    });
  }

  get isMarked() {
    return Boolean(this.pinned || this.pointed);
  }

  // The large map brings the numbers, also the one of what is pinned; the others are only marked, or lose the marks of another
  // run.
  drawnAnew(host) {
    if (!this.isHere) return;
    if (host === this.focus?.host) this.player.say();
    else if (this.isMarked) this.show();
    else unmark(host);
  }

  // What is marked on the candidates moves with them; all else was marked with the words of the step.
  movedOn() {
    if (this.isHere && this.isMarked) this.show({ moves: this.player.isMoving });
  }

  chooseLines(chosen) {
    this.lines.choose(chosen);
    this.player.say();
    this.report("lines", chosen);
  }

  // Whether the run has ended: then all its lines are to be seen, unless somebody has chosen others.
  ended(hasEnded) {
    if (this.lines.hasEnded === hasEnded) return;
    this.lines.hasEnded = hasEnded;
    this.lines.arrange();
    this.player.say();
  }

  resized() {
    this.lines.arrange();
    this.show();
  }

  tokens(name) {
    return this.strips[name].children;
  }

  get focus() {
    return this.charts()[0];
  }

  // ---- what is pointed at

  pointToken(event) {
    if (!this.isHere || (event.type === "focusin" && !event.target.matches(":focus-visible"))) return;
    this.point(this.placeOfToken(event));
  }

  // A source token is a column of what reads the source, an output token a row of what one steps through.
  placeOfToken(event) {
    const cell = event.target.closest(".token"), strip = cell?.parentElement.dataset.part, kind = this.about?.kind;
    if (!kind || !["source", "output"].includes(strip)) return null;
    const place = [...this.tokens(strip)].indexOf(cell);
    const [rows, columns] = this.about.strips[kind];
    if (strip === "source") return { kind: columns === strip ? kind : "cross", query: null, key: place };
    return this.happened({ kind: rows === strip ? kind : "cross", query: place, key: null });
  }

  // The place, unless its row is still to come or a question covers it: nothing is told of it, and nobody can ask. `isBlank`
  // says whether rows after the step are not drawn.
  happened(place, isBlank = this.player.data.unfolds) {
    if (!place || place.kind === "encoder" || this.player.data.grows === false) return place;
    const to = isBlank ? this.player.step : Infinity, covered = this.player.data.coveredFrom ?? Infinity;
    const isKnown = (place.query ?? 0) <= Math.min(to, covered - 1);
    return isKnown && (place.kind !== "decoder" || (place.key ?? 0) <= Math.min(to, covered)) ? place : null;
  }

  pointOnChart(event) {
    const host = chartOf(event);
    if (host) this.point(this.placeOn(host, event));
    else if (!event.composedPath().includes(this.root)) this.point(null);
  }

  placeOn(host, event) {
    const chart = this.charts().find((chart) => chart?.host === host);
    if (!chart || chart.seen?.run !== this.run) return null;
    const { map, candidates, second } = areasOf(host), { kind } = chart.seen;
    if (!map) return null;
    if (host !== this.focus.host) return this.happened(placeOnTile(host, kind, map, event));
    const place = (second && placeOnMap(second, kind, event)) ?? placeOnMap(map, kind, event);
    return place ? this.happened(place, true) : this.placeOfCandidate(candidates, event);
  }

  placeOfCandidate(area, event) {
    const candidate = area && Math.round(area.y(event)), isInside = area && event.clientX > area.box.left - MARGIN_PX;
    if (!isInside || !candidateNames(this.focus?.host)[candidate]) return null;
    const { kind, strips } = this.about;
    return { kind: strips[kind][0] === "output" ? kind : "cross", query: this.player.step, key: null, candidate };
  }

  point(place) {
    if (isSame(place, this.pointed)) return;
    this.pointed = place;
    this.show();
  }

  // ---- what is pinned

  clickOnChart(event) {
    const host = chartOf(event);
    if (!host || host !== this.focus?.host) return;
    // Out of one tap come up to three clicks, of the browser and of Plotly, one of them at no place: the first one counts, where
    // the finger was.
    const finger = this.pointer?.pointerType === "touch" ? this.pointer : null;
    if (finger && finger === this.tap) return;
    this.tap = finger;
    // Two clicks at once are Plotly's, which zooms out: what was pinned before them stays, wherever the second one is.
    if (event.detail > 1) {
      if (this.pinned !== this.before) this.keep(this.before);
      return;
    }
    this.before = this.pinned;
    this.pin(this.placeOn(host, finger ?? event));
  }

  // What the large map has can be pinned; a second click lets it go.
  pin(place) {
    if (this.player.data.isAsked) return this.answer(place);
    if (!place || (place.kind !== this.about.kind && !this.about.pinsAll)) return;
    const { kind, query, key } = place;
    this.keep(isSame({ kind, query, key }, this.pinned) ? null : { kind, query, key });
  }

  // The first question is answered by the letter itself, too.
  answer(place) {
    const text = this.tokens("source")[place?.key]?.textContent, { ways = {} } = this.player.data;
    const [way] = Object.entries(ways[this.player.step] ?? {}).find(([, words]) => words === text) ?? [];
    if (way) this.player.ways.choose(way);
  }

  unpin() {
    if (this.pinned) this.keep(null);
  }

  keep(place) {
    this.pinned = place;
    this.pins += 1; // the same place twice is two reports
    const at = place ? [place.query, place.key] : [];
    this.report("pin", { run: this.run, kind: this.about.kind, place: at, count: this.pins });
    this.player.say();
  }

  // Escape lets go; along the tokens of the source the arrows go. True where a key was one of these.
  key(event) {
    if (!this.isHere || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return false;
    const cell = event.composedPath()[0], cells = [...this.tokens("source")], place = cells.indexOf(cell);
    if (event.key === "Escape") {
      this.point(null);
      this.unpin();
      return true;
    }
    if (place < 0) return false;
    const to = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: cells.length - 1 }[event.key];
    if (to === undefined && event.key !== "Enter" && event.key !== " ") return false;
    event.preventDefault();
    if (to === undefined) cell.click();
    else if (cells[to]) {
      cell.tabIndex = -1;
      cells[to].tabIndex = 0;
      cells[to].focus();
    }
    return true;
  }

  // ---- the marks

  // Where something is, is asked once all tokens look as they will, and before anything is drawn over them: the browser would
  // arrange the page anew for each question.
  show({ moves = false } = {}) {
    if (!this.isHere) return this.lines.clear();
    const { pointed, pinned } = this, weights = this.weights();
    const links = this.aligned ? this.alignedLinks() : weights ? this.links(weights) : [];
    const isAll = this.lines.shown === "all" && !(this.aligned ? this.alignedPlace() : pointed);
    this.markTokens(isAll && this.lines.hasEnded ? [] : links);
    const maps = this.charts().filter((chart) => chart?.drawn?.run === this.run);
    const bands = maps.map((chart) => {
      const found = this.isMarked ? areasOf(chart.host) : {};
      return [pinned, pointed].map((place) => this.bands(chart, found, place));
    });
    const paths = this.lines.pathsOf(isAll ? this.allSoFar(weights) : links.length ? links : this.atRest(weights));
    maps.forEach(({ host }, place) => draw(host, bands[place]));
    this.lines.draw(paths, { moves, isPreview: Boolean(pointed), isThin: isAll });
  }

  // The numbers of the large map, if it shows what the strips are about.
  weights() {
    if (this.player.weights) return this.player.weights();
    const drawn = this.focus?.drawn;
    if (drawn?.run !== this.run || drawn.kind !== this.about.kind) return null;
    if (this.drawn !== drawn) [this.drawn, this.numbers] = [drawn, weightsOf(this.focus)];
    return this.numbers;
  }

  // The row that is looked with, or the column that is looked at: of what is pointed at, or else of the step.
  links(weights) {
    const { kind } = this.about, { step } = this.player;
    const now = this.pointed?.kind === kind ? this.pointed : this.about.isStepped ? { query: step, key: null } : this.pinned;
    if (!now) return [];
    const [rows, columns] = weights.shape, isColumn = now.query === null;
    return Array.from({ length: isColumn ? rows : columns }, (_, place) => {
      const [query, key] = isColumn ? [place, now.key] : [now.query, place];
      const from = this.cellOfQuery(kind, query), to = this.cellOfKey(kind, key);
      const isAside = !isColumn && now.key !== null && now.key !== key;
      const weight = weights.at(query, key), isMasked = weights.isMasked(query, key);
      return { from, to, key, other: isColumn ? from : to, weight, isMasked, isAside };
    });
  }

  // What the row of a step looks at, whatever is pointed at: for each column its tokens and the weight.
  looks(step = this.player.step) {
    const weights = this.isHere && this.about.isStepped ? this.weights() : null, { kind } = this.about ?? {};
    if (!weights) return [];
    return Array.from({ length: weights.shape[1] }, (_, key) => ({
      from: this.cellOfQuery(kind, step), to: this.cellOfKey(kind, key),
      weight: weights.isMasked(step, key) ? 0 : weights.at(step, key),
    }));
  }

  // The strong looks of all rows up to the step; of the head that aligns, where each word comes from.
  allSoFar(weights, step = this.player.step) {
    const { kind, isStepped } = this.about;
    if (this.aligned) return withCrossings(this.aligned.crossing(step)).map((link) => ({ ...this.onStrips(link), crosses: link.crosses }));
    if (!weights) return [];
    if (!isStepped) return this.atRest(weights);
    const cells = ({ query, key }) => [this.cellOfQuery(kind, query), this.cellOfKey(kind, key)];
    // Where it looks as it ends says nothing of the order.
    const ofText = strongLooks(weights, step).filter((link) => !cells(link).some((cell) => cell?.classList.contains("special")));
    return withCrossings(ofText).map((link) => ({ ...link, from: cells(link)[0], to: cells(link)[1], isAside: false }));
  }

  // What does not step, before anything of it is pointed at: each row's largest weight.
  atRest(weights) {
    if (!weights || this.aligned || this.about.isStepped) return [];
    const { kind } = this.about, { shape: [rows, columns], at, isMasked } = weights, keys = [...Array(columns).keys()];
    return Array.from({ length: rows }, (_, query) => {
      const key = keys.reduce((best, key) => (at(query, key) > at(query, best) ? key : best));
      const from = this.cellOfQuery(kind, query), to = this.cellOfKey(kind, key);
      return { from, to, key, other: to, weight: at(query, key), isMasked: isMasked(query, key), isAside: false };
    });
  }

  // What the head that aligns is asked: of what is pointed at, or else pinned.
  alignedPlace() {
    const places = [this.pointed, this.pinned].map((place) => place && inKind(place, "cross"));
    return places.find((place) => place);
  }

  alignedLinks() {
    const now = this.alignedPlace() ?? { query: this.player.step, key: null };
    return this.aligned.of(now).map((link) => this.onStrips(link, now.query === null));
  }

  onStrips({ query, key, weight, isAside }, isColumn) {
    const from = this.cellOfQuery("cross", query), to = this.cellOfKey("cross", key);
    return { from, to, key, other: isColumn ? from : to, weight, isAside, isMasked: false };
  }

  cellOfQuery(kind, query) {
    return this.tokens(this.about.strips[kind][0])[query];
  }

  cellOfKey(kind, key) {
    if (this.about.strips[kind][1] === "source") return this.tokens("source")[key];
    return this.tokens("output")[this.about.read[key]] ?? (key ? null : this.player.begins ?? this.lines.first);
  }

  // The tokens of a place, and of a candidate all that are the same.
  cellsOf(place) {
    if (!place) return [];
    const { kind, query, key, candidate } = place;
    const cells = [query === null ? null : this.cellOfQuery(kind, query), key === null ? null : this.cellOfKey(kind, key)];
    if (candidate === undefined) return cells;
    const name = candidateNames(this.focus?.host)[candidate], written = cells[0]?.textContent === name ? [cells[0]] : [];
    return [...written, ...[...this.tokens("source")].filter((cell) => cell.textContent === name)];
  }

  markTokens(links) {
    const pointed = this.cellsOf(this.pointed), pinned = this.cellsOf(this.pinned);
    const looks = new Map(links.map((link) => [link.other, link]));
    // Without a hand on something the output keeps the tint of its certainty.
    const tinted = { source: true, output: Boolean(this.pointed || (this.aligned && this.pinned)) || !this.player.data.grows };
    const [rows, columns] = this.about.strips[this.about.kind];
    for (const [name, isTinted] of Object.entries(tinted)) {
      const canPin = name === "source" ? columns === name : rows === name;
      for (const cell of this.tokens(name)) {
        const link = looks.get(cell), weight = isTinted && link?.weight > 0 ? link.weight : null;
        cell.classList.toggle("lit", pointed.includes(cell));
        cell.classList.toggle("pinned", pinned.includes(cell));
        const pressed = canPin ? String(pinned.includes(cell)) : null;
        if (cell.ariaPressed !== pressed) cell.ariaPressed = pressed;
        cell.classList.toggle("attended", weight !== null);
        if (weight !== null) tint(cell, weight.toFixed(2));
      }
    }
  }

  // Rectangles over a chart, in its pixels: rows and columns of its maps, and the candidate.
  bands({ host, drawn }, { map, candidates, second }, place) {
    const found = place && map && inKind(place, drawn.kind);
    if (!found) return [];
    const origin = host.getBoundingClientRect();
    // As far as it is in sight where somebody has zoomed in.
    const box = (area, ...edges) => {
      const within = (pixel, least, most) => Math.max(least, Math.min(most, pixel)), seen = area.box;
      const [left, right] = edges.slice(0, 2).map((x) => within(area.right(x), seen.left, seen.right));
      const [top, bottom] = edges.slice(2).map((y) => within(area.down(y), seen.top, seen.bottom));
      return [left - origin.left, top - origin.top, right - left, bottom - top];
    };
    const on = (map) => tilesOn(host).flatMap(({ x, y, rows, columns, block }) => {
      const row = found.query === null ? null : y + Math.floor(found.query / block[0]);
      const column = found.key === null ? null : x + Math.floor(found.key / block[1]);
      return [
        ...(row === null ? [] : [box(map, x - 0.5, x + columns - 0.5, row - 0.5, row + 0.5)]),
        ...(column === null ? [] : [box(map, column - 0.5, column + 0.5, y - 0.5, y + rows - 0.5)]),
      ];
    });
    const bands = [map, second].filter(Boolean).flatMap(on);
    const candidate = candidates ? this.candidateOf(place) : -1;
    if (candidate < 0) return bands;
    const [left, right] = host.layout.xaxis2.range;
    return [...bands, box(candidates, left, right, candidate - 0.45, candidate + 0.45)];
  }

  // The candidate that is the same token: of the source token, or of the token that is written at this step.
  candidateOf(place) {
    if (place.candidate !== undefined) return place.candidate;
    const { kind, query, key } = place, isNow = key === null && query === this.player.step;
    const cell = key !== null ? this.cellOfKey(kind, key) : isNow && this.cellOfQuery(kind, query);
    return cell ? candidateNames(this.focus?.host).indexOf(cell.textContent) : -1;
  }

  // What is pinned, as pieces of the sentence.
  words() {
    if (!this.isHere || !this.pinned) return [];
    const place = this.aligned && inKind(this.pinned, "cross");
    if (place) return this.aligned.words(place, (strip, at) => this.tokens(strip)[at]?.textContent);
    const { query, key } = this.pinned, { rows, keys } = this.about, weights = this.weights();
    const second = weights?.second ?? ((query, key) => secondWords(this.focus, query, key));
    const fields = { row: ["code", rows[query]], key: ["code", keys[key]] };
    const said = () => {
      if (key === null) return saySentence("row {row}", fields);
      if (query === null) return saySentence("key {key}", fields);
      if (!weights) return saySentence("row {row}, key {key}", fields);
      return saySentence("row {row}, key {key}: {weight}{more}", { ...fields, weight: weights.words(query, key), more: second(query, key) });
    };
    return [["strong", say(" Pinned: ")], ...said()];
  }
}

/** @type {WeakMap<Element, string>} */
const TINTS = new WeakMap();

// Of long texts most tokens keep theirs from step to step.
function tint(cell, weight) {
  if (TINTS.get(cell) === weight) return;
  TINTS.set(cell, weight);
  cell.style.setProperty("--weight", weight);
}

// One path for what is pinned, one for what is pointed at.
function draw(host, both) {
  ["pinned", "pointed"].forEach((name, i) => {
    mark(host, name, both[i].map(([x, y, width, height]) => `M${x} ${y}h${width}v${height}h${-width}z`).join(""));
  });
}

const NAMES = new WeakMap();

// The candidates of the step, as text: the labels are markup, in which each token is escaped.
function candidateNames(chart) {
  const labels = chart?.layout?.yaxis2?.ticktext ?? [];
  if (!NAMES.has(labels)) NAMES.set(labels, labels.map(plainText));
  return NAMES.get(labels);
}

// The numbers of a chart's map: the last frame has all rows, or the chart itself where frames only move a cover. `at` is a
// share of the largest, 0 to 1, which a weight is by itself.
function weightsOf({ host, frames = {} }, axis = "x") {
  const last = Object.values(frames).at(-1), { full = 1, word } = host.layout.meta;
  const maps = host.data.flatMap((trace, place) => {
    const z = last?.data[last.traces.indexOf(place)]?.z ?? trace.z, isHere = (trace.xaxis ?? "x") === axis;
    return isHere && trace.type === "heatmap" && z?.shape ? [{ z: unpacked(z), isWeights: Boolean(trace.coloraxis) }] : [];
  });
  const { values, shape } = maps.find((map) => map.isWeights).z;
  const grey = maps.filter((map) => !map.isWeights && map.z.shape[1] === shape[1]);
  const number = (query, key) => values[query * shape[1] + key], at = (query, key) => number(query, key) / full;
  const isMasked = (query, key) => grey.some((map) => map.z.values[query * shape[1] + key] === 1);
  const said = (value) => (word ? `${word} ${value.toPrecision(3)}` : weightWords(value));
  return { shape, at, number, isMasked, words: (query, key) => (isMasked(query, key) ? say("masked") : said(number(query, key))) };
}

// `, cause by word +2.31 nats`, of the same cell of the second map.
function secondWords(chart, query, key) {
  const { beside } = chart?.host.layout?.meta ?? {};
  return beside ? besideWords(beside, weightsOf(chart, "x3").number(query, key)) : "";
}

/** Of the numbers of a second map, as `content.py` calls them. */
const NATS = later("nats"), OF_LARGEST = later("of the row's largest");

export function besideWords(beside, value) {
  const { word, unit } = beside, sign = [NATS, say(NATS)].includes(unit) && value > 0 ? "+" : "", number = `${sign}${value.toFixed(2)}`;
  if (Number.isNaN(value)) return say(", {word} cannot be asked", { word });
  if (!unit) return say(", {word} {number}", { word, number });
  return say(", {word} {number} {unit}", { word, number, unit: [NATS, OF_LARGEST].includes(unit) ? say(unit) : unit });
}

// The page hears of an event in a notebook's cell, whose inside is its own, as one on the cell.
function chartOf(event) {
  return event.composedPath()[0].closest?.(".chart");
}
