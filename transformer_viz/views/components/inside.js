// One row of one head, from what enters to what leaves, and the arithmetic of any of its numbers. Python sends every figure as
// text, and explains a number when it is asked for one; here they are drawn and followed. Tab goes from number to number.

export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".inside");
  const me = root.__inside ?? (root.__inside = new Inside(root));
  me.ask = (what) => setTriggerValue("asked", what);
  me.update(data);
  // Likewise chart.js.
  return () => root.isConnected || me.stop();
}

const FOLLOW_MS = 100;

class Inside {
  constructor(root) {
    this.root = root;
    this.figure = this.part("figure");
    this.explained = this.part("explained");
    this.tip = this.part("tip");
    this.root.addEventListener("click", (event) => this.click(event));
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("focusin", ({ target }) => this.point(target.matches(":focus-visible") ? target : null));
    this.root.addEventListener("focusout", () => this.point(null));
    new ResizeObserver(() => this.shown && this.settle(this.find(this.shown.address))).observe(root);
    this.figure.addEventListener("pointermove", (event) => this.hover(event));
    this.figure.addEventListener("pointerleave", () => this.point(null));
    this.part("walk").addEventListener("click", () => this.walk());
    document.addEventListener("place-noted", ({ detail }) => this.follow(detail));
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  update(data) {
    this.root.classList.toggle("large", data.large);
    this.root.classList.toggle("dark", data.dark);
    const { explained, at, ...picture } = data, text = JSON.stringify(picture);
    this.data = data;
    if (text !== this.text) {
      this.text = text;
      const { activeElement } = this.root.getRootNode();
      const held = this.figure.contains(activeElement) && activeElement.dataset.address;
      this.stop();
      this.draw();
      if (held) this.find(held)?.focus();
    }
    this.explain(explained);
  }

  // ---- the figure

  draw() {
    const { row, words, enters, leaves, lens, untold } = this.data;
    this.shade = scaleOf(this.data.diverging.map((colour, i, { length }) => [i / (length - 1), colour]));
    this.tint = scaleOf(this.data.weights);
    this.part("row").replaceChildren(...pieces(row));
    this.part("hint").textContent = this.data.hint;
    this.figure.setAttribute("aria-label", words);
    let place = 0;
    const chain = (stations) => make("div", { className: "chain" }, stations.flatMap((station, i) => [
      ...(i ? [make("span", { className: "arrow", textContent: "→", ariaHidden: "true" })] : []),
      this.chained(station, (place += 1)),
    ]));
    this.figure.replaceChildren(
      chain(enters), this.flow(() => (place += 1)), ...(leaves.length ? [chain(leaves)] : []),
      ...(untold ? [make("p", { className: "untold", textContent: untold })] : []),
      ...(lens ? [this.lens(lens, (place += 1))] : []),
    );
    this.sayWalk();
  }

  header({ title, formula, words }, place) {
    const number = make("span", { className: "place", textContent: place });
    const heading = make("h2", {}, [number, title]);
    if (formula) heading.append(" ", make("span", { className: "formula" }, formulaOf(formula)));
    return make("header", {}, [heading, make("p", { textContent: words })]);
  }

  chained(station, place) {
    const isSum = station.lines.length > 1;
    const lines = station.lines.map(({ operator, cell }) => make("div", { className: isSum ? "line" : "line alone" }, [
      ...(isSum ? [make("span", { className: "operator", textContent: operator, ariaHidden: "true" })] : []),
      this.cell(cell, "strip", station),
    ]));
    const box = make("section", { className: station.lines[0].cell.values.length > 64 ? "station wide" : "station" }, [
      this.header(station, place), make("div", { className: "strips" }, lines),
    ]);
    box.dataset.station = station.id;
    return box;
  }

  flow(next) {
    const { names, flow: stations } = this.data;
    const widths = stations.flatMap(({ columns }) => columns.map(({ kind }) => WIDTHS[kind]));
    const table = make("div", { className: "flow" });
    table.style.gridTemplateColumns = ["minmax(56px, 110px)", ...widths].join(" ");
    table.style.gridTemplateRows = `auto auto repeat(${names.length}, var(--line))`;
    const labels = make("div", { className: "station names" }, names.map((name, row) => this.name(name, row)));
    setVars(labels, { from: 1, span: 1 });
    table.append(labels);
    let from = 2;
    for (const station of stations) {
      const box = make("section", { className: "station" }, [this.header(station, next())]);
      box.dataset.station = station.id;
      setVars(box, { from, span: station.columns.length });
      from += station.columns.length;
      names.forEach((name, row) => box.append(this.name(name, row, station)));
      station.columns.forEach((column, i) => {
        const head = make("div", { className: `head of-${column.kind}` }, formulaOf(column.head));
        setVars(head, { row: 2, column: i + 1 });
        box.append(head);
        column.cells.forEach((cell, row) => {
          const isEmpty = station.columns.every(({ cells }) => !cells[row]);
          const classes = ["slot", `of-${column.kind}`, names[row].class ?? "", isEmpty ? "empty" : ""];
          const slot = make("div", { className: classes.join(" ") });
          setVars(slot, { row: row + 3, column: i + 1 });
          slot.dataset.row = row;
          if (cell) slot.append(...[this.cell(cell, column.kind, station)].flat());
          box.append(slot);
        });
      });
      table.append(box);
    }
    return table;
  }

  lens({ title, words, verdict, rows }, place) {
    const body = make("tbody", {}, rows.map(({ name, candidates }) => make("tr", {}, [
      make("th", { scope: "row", textContent: name }),
      ...candidates.map(({ token, text, share, written }) => make("td", { className: written ? "written" : "" }, [
        make("code", { textContent: token }), make("span", { className: "p", textContent: text }), this.bar(share),
      ])),
    ])));
    const looks = { className: "lens-rows", tabIndex: 0, role: "region", ariaLabel: title };
    const table = make("div", looks, [make("table", {}, [body])]);
    const parts = [this.header({ title, words }, place), make("p", {}, pieces(verdict)), table];
    const box = make("section", { className: "station lens" }, parts);
    box.dataset.station = "lens";
    return box;
  }

  bar(share) {
    const bar = make("span", { className: "bar", ariaHidden: "true" });
    setVars(bar, { share });
    return bar;
  }

  name({ text, class: kind }, row, station) {
    const isEmpty = station?.columns.every(({ cells }) => !cells[row]);
    const classes = ["name", kind ?? "", isEmpty ? "empty" : ""];
    const box = make("div", { className: classes.join(" "), textContent: text, ariaHidden: "true" });
    setVars(box, { row: row + 3, column: 1 });
    box.dataset.row = row;
    return box;
  }

  cell(cell, kind, { most }) {
    if (cell.masked) return this.closed(cell);
    if (cell.values) return this.strip(cell, most);
    const words = `${cell.label}: ${cell.text}`;
    const number = make("button", { type: "button", className: "figure-number", textContent: cell.text, ariaLabel: words });
    number.dataset.words = words;
    if (cell.address) number.dataset.address = cell.address;
    if (cell.prefix) return [make("span", { className: "prefix", textContent: cell.prefix, ariaHidden: "true" }), number];
    if (cell.share === undefined) return number;
    const swatch = make("span", { className: "swatch", ariaHidden: "true" });
    swatch.style.background = `rgb(${this.tint(cell.share).slice(0, 3)})`;
    return [swatch, number];
  }

  closed({ masked, label, address }) {
    if (!address) return make("span", { className: "closed", textContent: masked });
    const words = `${label}: ${masked}`;
    const closed = make("button", { type: "button", className: "closed", textContent: masked, ariaLabel: words });
    Object.assign(closed.dataset, { address, words });
    return closed;
  }

  // A vector: one dot a number, as wide as there is room.
  strip(cell, most) {
    const { values } = cell, canvas = make("canvas", { width: values.length, height: 1 });
    const words = `${cell.label}, ${values.length} numbers`;
    const strip = make("button", { type: "button", className: "strip", ariaLabel: words }, [canvas]);
    const numbers = values.map(numberOf), largest = most ?? Math.max(...numbers.map(Math.abs), 1e-30);
    const context = canvas.getContext("2d"), image = context.createImageData(values.length, 1);
    numbers.forEach((value, i) => image.data.set(this.shade((value / largest + 1) / 2), 4 * i));
    context.putImageData(image, 0, 0);
    strip.__cell = cell;
    strip.__place = 0;
    if (cell.address) strip.dataset.address = cell.address;
    return strip;
  }

  // ---- what is pointed at

  hover(event) {
    const strip = event.target.closest(".strip"), number = event.target.closest("[data-words]");
    if (strip) this.point(strip, placeOn(strip, event));
    else this.point(number);
  }

  // Its words beside it, and the same place of all vectors that lie under each other. Where things are is asked before anything
  // is changed: the browser would arrange the page anew for each question.
  point(button, place = button?.__place) {
    const thing = button?.matches("[data-words], .strip") ? button : null;
    const words = thing && this.besides(thing, place), row = thing?.closest("[data-row]")?.dataset.row;
    for (const mark of this.root.querySelectorAll(".at")) mark.remove();
    for (const line of this.root.querySelectorAll(".hovered")) line.classList.remove("hovered");
    this.tip.hidden = !thing;
    if (!thing) return;
    Object.assign(this.tip.style, words.at);
    this.tip.textContent = words.text;
    if (row !== undefined) for (const one of this.figure.querySelectorAll(`[data-row="${row}"]`)) one.classList.add("hovered");
    if (thing.__cell) this.mark(thing, place);
  }

  besides(thing, place) {
    const { left, width, bottom } = thing.getBoundingClientRect(), mine = this.root.getBoundingClientRect();
    const cell = thing.__cell, x = left - mine.left + width * (cell ? (place + 0.5) / cell.values.length : 0.5);
    const isLeft = x < mine.width / 2, zoom = this.root.currentCSSZoom ?? 1, px = (size) => `${size / zoom}px`;
    const at = { left: isLeft ? px(x) : "auto", right: isLeft ? "auto" : px(mine.width - x), top: px(bottom - mine.top + 5) };
    return { text: cell ? wordsOf(cell, place) : thing.dataset.words, at };
  }

  mark(strip, place) {
    const { axis, values } = strip.__cell;
    for (const other of this.figure.querySelectorAll(".strip")) {
      if (other !== strip && (!axis || other.__cell.axis !== axis)) continue;
      const at = make("span", { className: "at" });
      Object.assign(at.style, { left: `${(100 * place) / values.length}%`, width: `${100 / values.length}%` });
      other.append(at);
    }
  }

  // ---- keys: Tab and Enter are the browser's; the arrows go along a vector, and Escape goes back along the way that one came

  key(event) {
    const { key, target } = event, strip = target.__cell, step = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (event.altKey || event.metaKey || event.ctrlKey) return;
    if (target.matches(".lens-rows")) return event.stopPropagation();
    if (key === "Escape" && this.at !== undefined) this.stop();
    else if (key === "Escape" && this.shown?.path.length > 1) this.back(this.shown.path.length - 2);
    else if (key === "Escape" && this.explained.contains(target)) this.find(this.shown.address)?.focus();
    else if (strip && step) this.turn(target, Math.max(0, Math.min(strip.values.length - 1, target.__place + step)));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  turn(strip, place) {
    strip.__place = place;
    this.point(strip, place);
    this.say(wordsOf(strip.__cell, place));
  }

  say(words) {
    this.part("said").textContent = words;
  }

  // ---- explain this number

  click(event) {
    const button = event.target.closest("button");
    if (!button) return;
    const { address, back } = button.dataset;
    // Enter is a click without a place.
    const isByKey = !event.detail;
    if (back !== undefined) this.back(Number(back), isByKey);
    else if (this.explained.contains(button)) this.goTo([...this.way, address], isByKey);
    else if (!address) return;
    else if (button.__cell) this.goTo([`${address}.${(isByKey ? button.__place : placeOn(button, event)) + 1}`], isByKey);
    else this.goTo([address], isByKey);
  }

  back(to, isByKey = true) {
    this.goTo(this.way.slice(0, to + 1), isByKey);
  }

  // Who goes by keyboard goes on from there.
  goTo(way, isByKey) {
    if (String(way) === String(this.way)) return isByKey && this.enter();
    this.isAsked = true;
    this.isToBeEntered = isByKey;
    this.ask({ way });
  }

  enter() {
    (this.explained.querySelector("[data-address]") ?? this.explained).focus();
  }

  get way() {
    return this.shown.path.map(({ address }) => address);
  }

  // The step and the pin that Python has noted of the player. Asked only then: what two parts of a page say in one moment is
  // sent as one, and Streamlit draws the first of the two alone. If all of the page was drawn, its own data is on the way.
  follow(noted) {
    clearTimeout(this.following);
    this.following = setTimeout(() => {
      const { at } = this.data, isOther = noted.step !== at.step || String(noted.pin) !== String(at.pin);
      if (this.root.isConnected && noted.run === at.run && isOther) this.ask({});
    }, FOLLOW_MS);
  }

  find(address) {
    return this.figure.querySelector(`[data-address="${CSS.escape(address ?? "")}"]`)
      ?? this.figure.querySelector(`[data-address="${CSS.escape(address?.replace(/\.\d+$/, "") ?? "")}"]`);
  }

  explain(shown) {
    const text = JSON.stringify(shown);
    if (text === this.explainedText) return;
    this.explainedText = text;
    this.shown = shown;
    const had = this.explained.contains(this.root.getRootNode().activeElement);
    this.explained.hidden = !shown;
    for (const one of this.figure.querySelectorAll(".now")) one.classList.remove("now");
    if (!shown) return;
    this.find(shown.address)?.classList.add("now");
    const { path, title, words, rounded } = shown, crumbs = make("nav", { ariaLabel: "The way here" });
    path.slice(0, -1).forEach(({ label }, i) => {
      const crumb = make("button", { type: "button", textContent: label });
      crumb.dataset.back = i;
      crumbs.append(crumb, make("span", { textContent: "›", ariaHidden: "true" }));
    });
    this.settle(this.find(shown.address));
    this.explained.replaceChildren(
      ...(path.length > 1 ? [crumbs] : []),
      make("p", { className: "kicker", textContent: "Explain this number" }),
      make("h2", { textContent: title }),
      make("p", { className: "words" }, pieces(words)),
      ...arithmetic(shown),
      ...(rounded ? [make("p", { className: "note", textContent: ROUNDED })] : []),
    );
    if (had || this.isToBeEntered) this.enter();
    this.isToBeEntered = false;
    if (this.isAsked) this.say(`${title}: ${shown.terms.map(({ operator, figure }) => `${operator} ${figure}`).join(" ")}`);
    this.isAsked = false;
  }

  // Beside the figure, or, where there is no room, below the station of the number.
  settle(number) {
    const sheet = this.figure.parentElement, isBeside = getComputedStyle(sheet).gridTemplateColumns.includes(" ");
    const flow = this.figure.querySelector(".flow"), isStacked = getComputedStyle(flow).display === "block";
    const station = number?.closest(isStacked ? ".station" : ".flow, .chain");
    if (isBeside || !station) sheet.append(this.explained);
    else station.after(this.explained);
  }

  // ---- the way, station by station

  get stations() {
    return [...this.figure.querySelectorAll("[data-station]")];
  }

  // Each press shows one more; after the last all are there again.
  walk() {
    this.to((this.at ?? -1) + 1);
  }

  to(place) {
    const { stations } = this, now = stations[place];
    if (!now) return this.stop();
    this.at = place;
    this.root.classList.add("walking");
    stations.forEach((station, i) => {
      station.classList.toggle("lit", i === place);
      station.classList.toggle("seen", i < place);
    });
    this.say(now.querySelector("header").textContent);
    this.sayWalk();
  }

  stop() {
    this.at = undefined;
    this.root.classList.remove("walking");
    for (const station of this.stations) station.classList.remove("lit", "seen");
    this.sayWalk();
  }

  sayWalk() {
    const next = this.stations[(this.at ?? -1) + 1]?.querySelector("h2")?.textContent.replace(/^\d+/, "");
    this.part("walk").textContent = this.at === undefined ? "▶ Show the way" : next ? `Next: ${next}` : "All of it";
  }
}

const WIDTHS = { strip: "minmax(110px, 1fr)", number: "80px", mask: "108px", weight: "104px" };

// ---- the arithmetic: a table of products, and a line of terms

const ROUNDED = "Rounded: with six digits after the point, too, what is shown does not quite add up.";

function arithmetic({ heads, rows, terms }) {
  const table = rows.length ? [tableOf(heads, rows)] : [];
  return [...table, make("div", { className: "terms" }, terms.map((term, i) => termOf(term, i === terms.length - 1)))];
}

function termOf(term, isLast) {
  const { operator, words } = term, figure = figureOf(term), label = make("small", { textContent: words });
  if (figure.tagName === "BUTTON") label.ariaHidden = "true";
  const box = make("span", { className: isLast ? "term result" : "term" }, [figure, label]);
  const before = operator ? [make("span", { className: "operator", textContent: operator })] : [];
  return make("span", { className: "step" }, [...before, box]);
}

function figureOf({ figure, words, address }) {
  if (!address) return make("span", { textContent: figure });
  const button = make("button", { type: "button", textContent: figure, ariaLabel: `${words}: ${figure}` });
  button.dataset.address = address;
  return button;
}

function tableOf(heads, rows) {
  const columns = heads.map((text) => (text ? make("th", { scope: "col", textContent: text }) : make("td")));
  const head = make("thead", {}, [make("tr", {}, columns)]);
  const body = make("tbody", {}, rows.map((row) => make("tr", {}, row.map((term) => make("td", {}, [figureOf(term)])))));
  return make("div", { className: "list" }, [make("table", { className: "products" }, [head, body])]);
}

// ---- small things

function make(name, properties = {}, children = []) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function setVars(element, values) {
  for (const [name, value] of Object.entries(values)) element.style.setProperty(`--${name}`, value);
}

function placeOn(strip, event) {
  const { left, width } = strip.getBoundingClientRect(), n = strip.__cell.values.length;
  return Math.max(0, Math.min(n - 1, Math.floor((n * (event.clientX - left)) / width)));
}

function wordsOf({ label, values }, place) {
  return `${label}, ${place + 1} of ${values.length}: ${values[place]}`;
}

function numberOf(text) {
  return Number(text.replace("−", "-"));
}

// `W_Q` and `e^{score}`, what stands below and above the line.
function formulaOf(text) {
  const pieces = text.split(/([_^])(?:\{([^}]*)\}|(\w))/);
  return pieces.flatMap((piece, i) => {
    if (i % 4 === 0) return [piece];
    return i % 4 === 1 ? [make(piece === "_" ? "sub" : "sup", { textContent: pieces[i + 1] ?? pieces[i + 2] })] : [];
  });
}

// The elements of a sentence.
function pieces(sentence) {
  return sentence.map(([style, text]) => make({ code: "code", strong: "strong" }[style] ?? "span", { textContent: text }));
}

// A colour scale as a function of a share from 0 to 1, which gives four bytes.
function scaleOf(scale) {
  const stops = scale.map(([share, colour]) => [share, partsOf(colour)]);
  return (share) => {
    const next = Math.max(1, stops.findIndex(([end]) => end >= share));
    const [[from, low], [to, high]] = [stops[next - 1], stops[next]];
    const along = Math.max(0, Math.min(1, (share - from) / (to - from || 1)));
    return [...low.map((part, i) => Math.round(part + (high[i] - part) * along)), 255];
  };
}

// `#rrggbb` or `rgb(r, g, b)`.
function partsOf(colour) {
  if (colour.startsWith("#")) return [1, 3, 5].map((from) => parseInt(colour.slice(from, from + 2), 16));
  return colour.match(/\d+/g).slice(0, 3).map(Number);
}
