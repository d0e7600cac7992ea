// Draws the blocks that `drawing.py` sends: each stack from its tokens below to its end above, as Vaswani et al. 2017,
// figure 1. Tab goes through the blocks, up along the computation. What is said of a block stands above the drawing.

const BOX = 134, HIGH = 24, LIT = 38, STRIP = 17, SUM = 7, GAP = 8, SIDE = 22, BETWEEN = 28, TEXT = 16;

export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".drawing");
  const me = root.__drawing ?? (root.__drawing = new Drawing(root));
  me.press = (block) => setTriggerValue("press", block);
  me.show(data);
}

class Drawing {
  constructor(root) {
    this.root = root;
    root.addEventListener("keydown", (event) => this.key(event));
    root.addEventListener("click", (event) => this.act(event));
    root.addEventListener("pointerover", (event) => this.say(event.target.closest(".block")));
    root.addEventListener("pointerleave", () => this.say(this.focused()));
    root.addEventListener("focusin", (event) => this.say(event.target.closest(".block")));
  }

  show(data) {
    const text = JSON.stringify(data);
    if (text === this.shown) return;
    const before = this.focused()?.dataset.place;
    Object.assign(this, { shown: text, blocks: new Map(), columns: [] });
    this.says = html("p", "says");
    this.svg = node("svg", { role: "group", "aria-label": data.title });
    const width = this.draw(data.stacks), scale = data.large ? 1.3 : 1;
    const height = Math.max(...this.columns.map(({ top }) => top)) + 2;
    this.root.classList.toggle("large", data.large);
    this.svg.setAttribute("viewBox", `0 ${-height} ${width} ${height + 2}`);
    this.svg.setAttribute("width", width * scale);
    this.svg.setAttribute("height", (height + 2) * scale);
    this.root.replaceChildren(this.says, this.svg);
    if (data.untold) this.root.append(Object.assign(html("p", "untold"), { textContent: data.untold }));
    const places = [...this.blocks.values()].map(({ group }) => group);
    this.home = places.find((group) => group.classList.contains("lit")) ?? places[0];
    this.say(this.home);
    this.blocks.get(before)?.group.focus({ preventScroll: true });
  }

  // ---- drawing; heights are counted upwards from the bottom

  draw(stacks) {
    let left = 1;
    for (const [number, stack] of stacks.entries()) {
      const outwards = number === stacks.length - 1 && stacks.length > 1 ? 1 : -1;
      this.columns.push(new Column(this, stack, left, outwards));
      left += BOX + 2 * SIDE + BETWEEN;
    }
    if (this.columns.length > 1) this.memory(...this.columns);
    return left - BETWEEN + 1;
  }

  // What the encoder made goes into every cross-attention.
  memory(encoder, decoder) {
    const into = decoder.crossed, along = encoder.left + encoder.width + BETWEEN / 2;
    if (!into.length) return;
    const ends = [encoder.top, ...into];
    this.line([[encoder.middle, encoder.top], [along, encoder.top]]);
    this.line([[along, Math.min(...ends)], [along, Math.max(...ends)]]);
    for (const height of into) this.line([[along, height], [decoder.middle - BOX / 2, height]], true);
  }

  line(points, hasTip = false, parent = this.svg) {
    parent.append(node("polyline", { class: "line", points: points.map(([x, y]) => `${x},${-y}`).join(" ") }));
    if (!hasTip) return;
    const [[x, y], [toX, toY]] = points.slice(-2), across = Math.sign(toX - x), up = Math.sign(toY - y);
    const corner = (side) => `${toX - 6 * across + 3.2 * side * up},${-(toY - 6 * up + 3.2 * side * across)}`;
    parent.append(node("polygon", { class: "tip", points: `${toX},${-toY} ${corner(1)} ${corner(-1)}` }));
  }

  words(text, x, y, name, anchor = "middle") {
    const drawn = node("text", { x, y: -y, class: name, style: `text-anchor: ${anchor}` });
    drawn.textContent = text;
    this.svg.append(drawn);
  }

  block(given, middle, bottom, high, wide = BOX) {
    const classes = ["block", given.role, given.lit && "lit", given.marked && "marked"].filter(Boolean).join(" ");
    const state = given.may ? { role: "button", "aria-pressed": Boolean(given.lit) } : { role: "img" };
    const where = given.layer === null || given.layer === undefined ? "" : `, layer ${given.layer + 1}`;
    const label = `${given.title}${where}${given.marked ? ", different" : ""}. ${given.sentence}`;
    const group = node("g", { class: classes, tabindex: 0, "aria-label": label, "data-place": given.place, ...state });
    group.append(node("rect", { x: middle - wide / 2, y: -bottom - high, width: wide, height: high }));
    const lines = given.lit ? [given.title, given.lit] : [given.title];
    for (const [row, line] of lines.entries()) {
      // The sign of a difference stands within the box, right of its name.
      const y = -bottom - high * (lines.length - row - 0.5) / lines.length;
      const text = node("text", { x: middle - (given.marked ? 7 : 0), y });
      text.textContent = line;
      group.append(text);
    }
    if (given.marked) {
      const sign = node("text", { class: "sign", x: middle + wide / 2 - 10, y: -bottom - high / 2 });
      sign.textContent = "≠";
      group.append(sign);
    }
    this.svg.append(group);
    this.blocks.set(given.place, { given, group, middle, height: bottom + high / 2 });
  }

  // ---- what is said and pressed

  focused() {
    return this.root.getRootNode().activeElement?.closest?.(".block") ?? null;
  }

  say(group) {
    const said = this.blocks.get((group ?? this.home)?.dataset.place)?.given;
    if (!said) return;
    const name = html("strong");
    name.textContent = said.layer === null || said.layer === undefined ? said.title : `${said.title}, layer ${said.layer + 1}`;
    this.says.replaceChildren(name, `. ${said.sentence}`);
  }

  act(event) {
    const group = event.target.closest?.(".block"), given = this.blocks.get(group?.dataset.place)?.given;
    if (!given?.may) return;
    // The player may be further than the last step that it reported.
    const step = document.querySelector(".st-key-focus .chart")?.__step;
    this.press({ kind: given.kind, layer: given.layer, step });
  }

  // A block of a drawing is no button to the browser.
  key(event) {
    if ((event.key !== "Enter" && event.key !== " ") || !event.target.matches(".block")) return;
    this.act(event);
    event.preventDefault();
    event.stopPropagation();
  }
}

// One stack, drawn upwards: `top` is the height reached so far.
class Column {
  constructor(drawing, stack, left, outwards) {
    Object.assign(this, { drawing, left, outwards, top: 0, crossed: [], width: BOX + 2 * SIDE });
    this.middle = left + this.width / 2;
    drawing.words(stack.tokens, this.middle, TEXT / 2, "small");
    this.top = TEXT;
    for (const block of stack.begin) this.step(block);
    for (const layer of stack.layers) layer.fold ? this.step(layer.fold) : this.layer(layer);
    for (const block of stack.end) this.step(block);
    this.up(GAP + 4, stack.end.some(({ role }) => role === "output"));
    if (stack.end.some(({ role }) => role === "output")) {
      drawing.words(stack.writes, this.middle, this.top + TEXT / 2, "small");
      this.top += TEXT;
    }
  }

  up(by, hasTip = false) {
    this.drawing.line([[this.middle, this.top], [this.middle, this.top + by]], hasTip);
    this.top += by;
  }

  step(block) {
    this.up(GAP + 2);
    this.put(block, block.role === "norm" ? STRIP : HIGH);
  }

  put(block, high) {
    if (block.kind === "cross" || block.isCrossed) this.crossed.push(this.top + (block.lit ? LIT : HIGH) / 2);
    this.drawing.block(block, this.middle, this.top, block.lit ? LIT : high);
    this.top += block.lit ? LIT : high;
  }

  layer({ title, sublayers }) {
    this.up(GAP + 2);
    const bottom = this.top, frame = node("rect", { class: "frame", x: this.left, width: this.width, rx: 7 });
    this.drawing.svg.append(frame);
    // The layer's name stands beside its last addition, on the side where no residual connection is, or above all.
    const sums = sublayers.map((sublayer) => this.around(sublayer)), last = sums[sums.length - 1];
    const inner = this.outwards > 0 ? this.left + 7 : this.left + this.width - 7;
    this.drawing.words(title, inner, last ?? this.top + TEXT / 2, "small", this.outwards > 0 ? "start" : "end");
    this.up(last === undefined ? TEXT : 5);
    frame.setAttribute("y", -this.top);
    frame.setAttribute("height", this.top - bottom);
  }

  // Returns the height of the addition, where there is one.
  around({ before, block, within, after, isResidual }) {
    this.up(5);
    const fork = this.top, side = this.middle + this.outwards * (BOX / 2 + 11);
    let sum;
    this.up(6);
    for (const [part, high] of [[before, STRIP], [block, HIGH], [within, STRIP]]) {
      if (!part) continue;
      this.put(part, high);
      this.up(6);
    }
    if (isResidual) {
      const end = this.middle + this.outwards * SUM;
      sum = this.top + SUM;
      this.drawing.line([[this.middle, fork], [side, fork], [side, sum], [end, sum]], true);
      this.drawing.svg.append(node("circle", { class: "sum", cx: this.middle, cy: -sum, r: SUM }));
      this.drawing.line([[this.middle - 4, sum], [this.middle + 4, sum]]);
      this.drawing.line([[this.middle, sum - 4], [this.middle, sum + 4]]);
      this.top = sum + SUM;
    }
    if (after) {
      this.up(5);
      this.put(after, STRIP);
    }
    return sum;
  }
}

function html(name, className = "") {
  return Object.assign(document.createElement(name), { className });
}

function node(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
