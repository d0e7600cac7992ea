// A table of a handful of columns. Everything comes as data and is set as text. A heading sorts by its column, largest first, then
// the other way round, then as it came; a row may have a button, which is told to Python by the row's place. Drawn anew only where
// the numbers changed, so that a button that was pressed keeps the focus.

export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".table");
  root.__go = (row) => setTriggerValue("go", row);
  const { here, ...content } = data;
  const said = JSON.stringify(content);
  if (root.__said !== said) {
    root.__said = said;
    root.replaceChildren(table(root, data));
  }
  for (const line of root.querySelectorAll("tbody tr")) line.ariaCurrent = Number(line.dataset.row) === here ? "true" : null;
}

function made(tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
}

function table(root, { label, columns, rows, go }) {
  const found = made("table"), head = made("thead"), titles = made("tr"), body = made("tbody");
  found.append(made("caption", label), head, body);
  head.append(titles);
  const lines = rows.map((cells, row) => line(root, columns, cells, row, go));
  body.append(...lines);
  columns.forEach(({ title, help, isNumber }, place) => {
    const heading = made("th", undefined, isNumber ? "number" : ""), button = made("button", title);
    heading.scope = "col";
    Object.assign(button, { type: "button", title: help });
    button.addEventListener("click", () => {
      const order = { descending: "ascending", ascending: null }[heading.ariaSort] ?? (heading.ariaSort ? null : "descending");
      for (const other of titles.children) other.ariaSort = null;
      heading.ariaSort = order;
      body.append(...sorted(lines, rows, place, order));
    });
    heading.append(button);
    titles.append(heading);
  });
  if (go) titles.firstChild.after(Object.assign(made("th", go.title, "way"), { scope: "col", title: go.help }));
  return found;
}

function line(root, columns, cells, row, go) {
  const found = made("tr");
  found.dataset.row = row;
  cells.forEach(({ text }, place) => {
    const cell = made(place ? "td" : "th", text, columns[place].isNumber ? "number" : "");
    if (!place) cell.scope = "row";
    found.append(cell);
  });
  if (go) {
    const cell = made("td");
    if (go.rows[row]) {
      const button = Object.assign(made("button", "Go"), { type: "button", ariaLabel: `Go to ${cells[0].text}` });
      button.addEventListener("click", () => root.__go(row));
      cell.append(button);
    }
    found.children[0].after(cell);
  }
  return found;
}

// What has no number comes last, either way round.
function sorted(lines, rows, place, order) {
  if (!order) return lines;
  const sign = order === "descending" ? -1 : 1, value = (row) => rows[row][place].value;
  const compared = (a, b) => {
    if (value(a) === null || value(b) === null) return (value(a) === null) - (value(b) === null);
    return value(a) < value(b) ? -sign : value(a) > value(b) ? sign : 0;
  };
  return rows.map((_, row) => row).sort(compared).map((row) => lines[row]);
}
