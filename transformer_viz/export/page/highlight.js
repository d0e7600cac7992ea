// Linked highlighting: what is pointed at, or pinned, is marked wherever it is: token, row, column, cell, tile, candidate. Put
// after the player. All of it happens in the browser, in the app and on the exported page.
//
// A place is {kind, query, key}: a cell of one kind of attention, or a whole row (key null) or column (query null).

class Highlight {
  // `charts` are the large map and the small ones; `report` is told what is pinned, and whether there are lines.
  constructor(player, charts, report = () => {}) {
    Object.assign(this, { player, root: player.root, charts, report });
    this.strips = { source: player.part("source"), output: player.part("output") };
    this.pointed = this.pinned = null;
    this.pins = 0;
    this.lines = new Lines(this.root);
    this.lines.button.addEventListener("click", () => this.switchLines());
    for (const name of ["pointerover", "focusin"]) this.root.addEventListener(name, (event) => this.pointToken(event));
    for (const name of ["pointerleave", "focusout"]) this.root.addEventListener(name, () => this.point(null));
    this.root.addEventListener("click", (event) => this.pin(this.placeOfToken(event)));
    document.addEventListener("pointermove", (event) => this.isHere && this.pointOnChart(event));
    document.addEventListener("click", (event) => this.isHere && this.clickOnChart(event));
    // It does not bubble. What is marked on the candidates moves with them; all else was marked with the words of the step.
    document.addEventListener("step-drawn", () => this.isHere && this.isMarked && this.show({ moves: player.isMoving }), true);
    document.addEventListener("chart-drawn", (event) => this.isHere && this.drawnAnew(event.target));
    new ResizeObserver(() => this.isHere && this.resized()).observe(this.root);
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
  drawnAnew(chart) {
    if (chart === this.focus) this.player.say();
    else if (this.isMarked) this.show();
    else unmark(chart);
  }

  switchLines() {
    this.lines.choose(this.lines.isOn ? "off" : "on");
    this.player.say();
    this.report("lines", this.lines.chosen);
  }

  resized() {
    this.lines.choose(this.lines.chosen);
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
    const to = isBlank ? this.player.step : Infinity, covered = this.player.data.covered_from ?? Infinity;
    const isKnown = (place.query ?? 0) <= Math.min(to, covered - 1);
    return isKnown && (place.kind !== "decoder" || (place.key ?? 0) <= Math.min(to, covered)) ? place : null;
  }

  pointOnChart(event) {
    const chart = event.target.closest?.(".chart");
    if (chart) this.point(this.placeOn(chart, event));
    else if (!event.composedPath().includes(this.root)) this.point(null);
  }

  placeOn(chart, event) {
    if (chart.__drawn?.run !== this.run) return null;
    const { map, candidates, second } = areasOf(chart), { kind } = chart.__drawn;
    if (!map || !this.charts().includes(chart)) return null;
    if (chart !== this.focus) return this.happened(placeOnTile(chart, map, event));
    const place = (second && placeOnMap(second, kind, event)) ?? placeOnMap(map, kind, event);
    return place ? this.happened(place, true) : this.placeOfCandidate(candidates, event);
  }

  placeOfCandidate(area, event) {
    const candidate = area && Math.round(area.y(event)), isInside = area && event.clientX > area.box.left - MARGIN_PX;
    if (!isInside || !candidateNames(this.focus)[candidate]) return null;
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
    const chart = event.target.closest?.(".chart");
    if (!chart || chart !== this.focus) return;
    // Two clicks at once are Plotly's, which zooms out: what was pinned before them stays, wherever the second one is.
    if (event.detail > 1) {
      if (this.pinned !== this.before) this.keep(this.before);
      return;
    }
    this.before = this.pinned;
    this.pin(this.placeOn(chart, event));
  }

  // What the large map has can be pinned; a second click lets it go.
  pin(place) {
    if (!place || (place.kind !== this.about.kind && !this.about.pinsAll)) return;
    const { kind, query, key } = place;
    this.keep(isSame({ kind, query, key }, this.pinned) ? null : { kind, query, key });
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

  // Where something is, is asked before anything is changed: the browser would arrange the page anew for each question.
  show({ moves = false } = {}) {
    if (!this.isHere) return this.lines.clear();
    const { pointed, pinned } = this, weights = this.weights();
    const maps = this.charts().filter((chart) => chart?.__drawn?.run === this.run);
    const bands = maps.map((chart) => {
      const found = this.isMarked ? areasOf(chart) : {};
      return [pinned, pointed].map((place) => this.bands(chart, found, place));
    });
    const links = this.aligned ? this.alignedLinks() : weights ? this.links(weights) : [];
    const all = !this.aligned && weights && !this.about.isStepped && !links.length ? this.strongest(weights) : links;
    const isCrossing = this.aligned && !this.alignedPlace();
    const crossing = isCrossing ? this.aligned.crossing(this.player.step).map((link) => this.onStrips(link)) : all;
    const paths = this.lines.pathsOf(crossing);
    maps.forEach((chart, place) => draw(chart, bands[place]));
    this.markTokens(links);
    this.lines.draw(paths, { moves, isPreview: Boolean(pointed), isThin: Boolean(isCrossing) });
  }

  // The numbers of the large map, if it shows what the strips are about.
  weights() {
    if (this.player.weights) return this.player.weights();
    const drawn = this.focus?.__drawn;
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

  // What does not step, before anything of it is pointed at: each row's largest weight.
  strongest({ shape: [rows, columns], at, isMasked }) {
    const { kind } = this.about, keys = [...Array(columns).keys()];
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
    return this.tokens("output")[this.about.read[key]] ?? (key ? null : this.lines.first);
  }

  // The tokens of a place, and of a candidate all that are the same.
  cellsOf(place) {
    if (!place) return [];
    const { kind, query, key, candidate } = place;
    const cells = [query === null ? null : this.cellOfQuery(kind, query), key === null ? null : this.cellOfKey(kind, key)];
    if (candidate === undefined) return cells;
    const name = candidateNames(this.focus)[candidate], written = cells[0]?.textContent === name ? [cells[0]] : [];
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
        cell.ariaPressed = canPin ? String(pinned.includes(cell)) : null;
        cell.classList.toggle("attended", weight !== null);
        cell.classList.toggle("struck", this.lines.isOn && Boolean(link?.isMasked));
        if (weight !== null) cell.style.setProperty("--weight", weight);
      }
    }
  }

  // Rectangles over a chart, in its pixels: rows and columns of its maps, and the candidate.
  bands(chart, { map, candidates, second }, place) {
    const found = place && map && inKind(place, chart.__drawn.kind);
    if (!found) return [];
    const origin = chart.getBoundingClientRect();
    // As far as it is in sight where somebody has zoomed in.
    const box = (area, ...edges) => {
      const within = (pixel, least, most) => Math.max(least, Math.min(most, pixel)), seen = area.box;
      const [left, right] = edges.slice(0, 2).map((x) => within(area.right(x), seen.left, seen.right));
      const [top, bottom] = edges.slice(2).map((y) => within(area.down(y), seen.top, seen.bottom));
      return [left - origin.left, top - origin.top, right - left, bottom - top];
    };
    const on = (map) => tilesOn(chart).flatMap(({ x, y, rows, columns, block }) => {
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
    const [left, right] = chart.layout.xaxis2.range;
    return [...bands, box(candidates, left, right, candidate - 0.45, candidate + 0.45)];
  }

  // The candidate that is the same token: of the source token, or of the token that is written at this step.
  candidateOf(place) {
    if (place.candidate !== undefined) return place.candidate;
    const { kind, query, key } = place, isNow = key === null && query === this.player.step;
    const cell = key !== null ? this.cellOfKey(kind, key) : isNow && this.cellOfQuery(kind, query);
    return cell ? candidateNames(this.focus).indexOf(cell.textContent) : -1;
  }

  // What is pinned, as pieces of the sentence.
  words() {
    if (!this.isHere || !this.pinned) return [];
    const place = this.aligned && inKind(this.pinned, "cross");
    if (place) return this.aligned.words(place, (strip, at) => this.tokens(strip)[at]?.textContent);
    const { query, key } = this.pinned, { rows, keys } = this.about, weights = this.weights();
    const row = query === null ? [] : [["plain", "row "], ["code", rows[query]]];
    const token = key === null ? [] : [["plain", "key "], ["code", keys[key]]];
    const comma = row.length && token.length ? [["plain", ", "]] : [];
    const said = comma.length && weights && `: ${weights.words(query, key)}${secondWords(this.focus, query, key)}`;
    const number = said ? [["plain", said]] : [];
    return [["strong", " Pinned: "], ...row, ...comma, ...token, ...number];
  }
}

// Of the labels beside a map and below it.
const MARGIN_PX = 90;

function isSame(a, b) {
  return a === b || Boolean(a && b && ["kind", "query", "key", "candidate"].every((name) => a[name] === b[name]));
}

// The same place in another kind of attention: a step is a row of both that write, a source token a column of both that read
// it.
function inKind({ kind, query, key }, other) {
  if (kind === other) return { query, key };
  if (other !== "encoder" && kind !== "encoder") return query === null ? null : { query, key: null };
  const isOfSource = kind !== "decoder" && other !== "decoder";
  return isOfSource && key !== null ? { query: null, key } : null;
}

// The large chart's map, its candidates, and the map of a measure beside it; of another chart the map alone.
function areasOf(chart) {
  const named = Object.fromEntries(areas(chart).map((area) => [area.name, area]));
  return { map: named.xy, candidates: named.x2y2, second: named.x3y3 };
}

function placeOnMap(area, kind, event) {
  const cell = cellAt(area, event, [MARGIN_PX, MARGIN_PX / 3]);
  return cell && { kind, ...cell };
}

function placeOnTile(chart, area, event) {
  const x = Math.round(area.x(event)), y = Math.round(area.y(event));
  const tile = tilesOn(chart).find((tile) => x >= tile.x && x < tile.x + tile.columns && y >= tile.y && y < tile.y + tile.rows);
  if (!tile) return null;
  return { kind: chart.__drawn.kind, query: (y - tile.y) * tile.block[0], key: (x - tile.x) * tile.block[1] };
}

// The maps on a chart, in cells: all tiles of a mosaic, or the one large map.
function tilesOn({ layout: { meta } }) {
  return meta?.tiles ? tilesOf(meta) : [{ x: 0, y: 0, rows: Infinity, columns: Infinity, block: [1, 1] }];
}

const INK = "var(--st-text-color)";
const LOOKS = {
  pinned: { fill: "none", stroke: INK, "stroke-width": 2, "stroke-dasharray": "5 3" },
  pointed: { fill: INK, "fill-opacity": 0.12, stroke: INK, "stroke-width": 1.5 },
};

// What is over a chart: one path for what is pinned, one for what is pointed at. Plotly would draw the chart anew for a shape.
function draw(chart, both) {
  let marks = chart.querySelector(":scope > .marks");
  if (!marks) {
    marks = svg("svg", { class: "marks", "aria-hidden": "true" });
    Object.assign(marks.style, { position: "absolute", inset: 0, width: "100%", height: "100%", pointerEvents: "none" });
    marks.append(...["pinned", "pointed"].map((name) => svg("path", { class: name, ...LOOKS[name] })));
    if (chart.layout.meta?.pitch_x) for (const path of marks.children) path.setAttribute("stroke-width", 1);
    chart.style.position = "relative";
    chart.append(marks);
  }
  both.forEach((bands, place) => {
    const d = bands.map(([x, y, width, height]) => `M${x} ${y}h${width}v${height}h${-width}z`).join("");
    marks.children[place].setAttribute("d", d);
  });
}

function unmark(chart) {
  for (const path of chart.querySelectorAll(":scope > .marks path")) path.setAttribute("d", "");
}

const NAMES = new WeakMap();

// The candidates of the step, as text: the labels are markup, in which each token is escaped.
function candidateNames(chart) {
  const labels = chart?.layout?.yaxis2?.ticktext ?? [];
  const text = (label) => new DOMParser().parseFromString(label, "text/html").body.textContent;
  if (!NAMES.has(labels)) NAMES.set(labels, labels.map(text));
  return NAMES.get(labels);
}

// The numbers of a chart's map: the last frame has all rows, or the chart itself where frames only move a cover. `at` is a
// share of the largest, 0 to 1, which a weight is by itself.
function weightsOf(chart, axis = "x") {
  const frames = Object.values(chart.__frames ?? {}), last = frames[frames.length - 1], { full = 1, word } = chart.layout.meta;
  const maps = chart.data.flatMap((trace, place) => {
    const z = last?.data[last.traces.indexOf(place)]?.z ?? trace.z, isHere = (trace.xaxis ?? "x") === axis;
    return isHere && trace.type === "heatmap" && z?.shape ? [{ z: unpacked(z), isWeights: Boolean(trace.coloraxis) }] : [];
  });
  const { values, shape } = maps.find((map) => map.isWeights).z;
  const grey = maps.filter((map) => !map.isWeights && map.z.shape[1] === shape[1]);
  const number = (query, key) => values[query * shape[1] + key], at = (query, key) => number(query, key) / full;
  const isMasked = (query, key) => grey.some((map) => map.z.values[query * shape[1] + key] === 1);
  const said = (value) => (word ? `${word} ${value.toPrecision(3)}` : weightWords(value));
  return { shape, at, number, isMasked, words: (query, key) => (isMasked(query, key) ? "masked" : said(number(query, key))) };
}

// `, cause by word +2.31 nats`, of the same cell of the second map.
function secondWords(chart, query, key) {
  const { beside } = chart.layout.meta ?? {};
  if (!beside) return "";
  const value = weightsOf(chart, "x3").number(query, key);
  const sign = beside.unit === "nats" && value > 0 ? "+" : "";
  return `, ${beside.word} ${Number.isNaN(value) ? "cannot be asked" : `${sign}${value.toFixed(2)} ${beside.unit}`.trim()}`;
}
