// The sentence, the token strips and the table of Compare. Everything comes as data and is set as text: a token is no markup.

export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".compare");
  root.classList.toggle("dark", data.dark);
  root.classList.toggle("large", data.large);
  const parts = [sentence(data.sentence), strips(data.strips), data.rows.length ? table(data, (kind) => setTriggerValue("kind", kind)) : null];
  root.replaceChildren(...parts.filter(Boolean));
  root.__pinned = null;
  root.onclick = (event) => pin(root, data.aligners, event.target.closest(".token[data-at]"));
}

// A word that is clicked is asked of the head that aligns in its own run, where one is known: a second click lets it go.
function pin(root, aligners, cell) {
  const given = cell && aligners?.[cell.dataset.side];
  if (!given) return;
  root.__pinned = root.__pinned === cell ? null : cell;
  for (const other of root.querySelectorAll(".token.pinned, .token.attended")) other.classList.remove("pinned", "attended");
  root.querySelector(".pinned-words")?.remove();
  if (!root.__pinned) return;
  const aligned = new Aligned(given), { side, at, strip } = cell.dataset, isColumn = strip === "reads";
  const place = isColumn ? { query: null, key: +at } : { query: +at, key: null };
  const cellAt = (name, at) => root.querySelector(`.token[data-side="${side}"][data-strip="${name}"][data-at="${at}"]`);
  cell.classList.add("pinned");
  for (const { query, key, weight } of aligned.of(place)) {
    const other = isColumn ? cellAt("writes", query) : cellAt("reads", key);
    other?.classList.toggle("attended", weight > 0);
    other?.style.setProperty("--weight", weight);
  }
  const words = aligned.words(place, (name, at) => cellAt(name === "source" ? "reads" : "writes", at)?.textContent);
  const said = made("span", "pinned-words");
  said.append(...words.map(([style, text]) => made(TAGS[style], "", text)));
  root.querySelector(".sentence").append(said);
}

function made(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

const TAGS = { plain: "span", code: "code", strong: "strong" };

function sentence(pieces) {
  const line = made("p", "sentence");
  line.setAttribute("aria-live", "polite");
  line.append(...pieces.map(([style, text]) => made(TAGS[style], "", text)));
  return line;
}

// Each position is a column of A's token above B's, so that they stay upon each other where the line breaks.
function strips(given) {
  const all = made("div", "strips");
  for (const { name, label, sides, apart, hint } of given) {
    const strip = made("div", "strip");
    strip.setAttribute("role", "group");
    strip.setAttribute("aria-label", hint);
    const names = column(sides.map((side) => made("span", "side", side.name)));
    strip.append(made("span", "label", label), names);
    // What is longer than its place scrolls, by keys too.
    if (sides.some(({ tokens }) => tokens.length > 60)) strip.tabIndex = 0;
    const longest = Math.max(...sides.map(({ tokens }) => tokens.length));
    for (let place = 0; place < longest; place += 1) {
      const pair = column(sides.map(({ tokens }, side) => token(tokens[place], { side, strip: name })));
      pair.classList.toggle("apart", apart.includes(place));
      pair.classList.toggle("first", apart[0] === place);
      strip.append(pair);
    }
    all.append(strip);
  }
  return all;
}

function column(children) {
  const pair = made("span", "pair");
  pair.append(...children);
  return pair;
}

function token(given, where) {
  if (!given) {
    const none = made("span", "token none", "–");
    none.title = "no token here";
    return none;
  }
  const cell = made("span", `token ${given.class}`, given.text);
  cell.title = given.title;
  Object.assign(cell.dataset, where, { at: given.at });
  if (given.tint !== undefined) cell.style.setProperty("--tint", given.tint);
  return cell;
}

function table({ caption, columns, rows }, goTo) {
  const whole = made("table", "apart-table");
  const head = made("tr");
  for (const name of columns) {
    const cell = made("th", "", name);
    cell.scope = "col";
    head.append(cell);
  }
  const body = rows.map(({ what, cells, kind, isText }) => {
    const line = made("tr", isText ? "text" : "");
    const name = made("th", "", what);
    name.scope = "row";
    line.append(name, ...cells.map((text) => made("td", text === "same" ? "same" : "", text)));
    // Cut in its cell; the strips have all of it.
    if (isText) for (const cell of line.querySelectorAll("td:not(:last-child)")) cell.title = cell.textContent;
    if (kind) {
      const button = made("button", "place", line.lastChild.textContent);
      button.type = "button";
      button.title = `show this head of ${what}`;
      button.addEventListener("click", () => goTo(kind));
      line.lastChild.replaceChildren(button);
    }
    return line;
  });
  whole.append(made("caption", "", caption), head, ...body);
  return whole;
}
