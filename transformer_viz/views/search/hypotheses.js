// The finished hypotheses of a search, one a row, of which one is chosen: the keyboard's way to what a click on a node of the tree
// does. Everything comes as data and is set as text: what a model writes is no markup.

export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".hypotheses");
  const made = JSON.stringify([data.columns, data.rows]);
  // The same table stays, so that who walks through it with the arrow keys stays where they are.
  if (root.__made !== made) root.replaceChildren(table(data, (node) => setTriggerValue("node", node)));
  root.__made = made;
  for (const box of root.querySelectorAll("input")) box.checked = +box.value === data.node;
}

function made(tag, text) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  return element;
}

function table({ columns, rows }, choose) {
  const table = made("table"), head = made("tr");
  head.append(...columns.map((name) => Object.assign(made("th", name), { scope: "col" })));
  table.append(made("caption", "Hypotheses: the finished ones, best first, and the one in focus"));
  table.append(made("thead"), made("tbody"));
  table.tHead.append(head);
  table.tBodies[0].append(...rows.map((row) => line(row, choose)));
  return table;
}

function line({ node, name, cells }, choose) {
  const line = made("tr"), first = made("td"), label = made("label"), box = made("input");
  Object.assign(box, { type: "radio", name: "hypothesis", value: node, ariaLabel: name });
  box.addEventListener("change", () => choose(node));
  label.append(box, cells[0]);
  first.append(label);
  line.append(first, ...cells.slice(1).map((cell) => made("td", cell)));
  line.addEventListener("click", ({ target }) => target.closest("label") ?? box.click());
  return line;
}
