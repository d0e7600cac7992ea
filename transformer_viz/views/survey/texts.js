// Lists of texts of a survey. Everything comes as data and is set as text. A text is a link to Explore: a click opens it in this
// session, and with Ctrl, Shift or the middle button the browser opens it elsewhere, as any link.

const AT_ONCE = 10;

export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".texts");
  root.classList.toggle("large", data.large);
  root.replaceChildren(...data.sections.map((section) => list(section, (what) => setTriggerValue("open", what))));
}

function made(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

function list({ title, lines }, open) {
  const section = made("section"), first = made("ul");
  first.append(...lines.slice(0, AT_ONCE).map((line) => item(line, open)));
  section.append(made("h2", "", title), lines.length ? first : made("p", "", "none"));
  if (lines.length > AT_ONCE) {
    const fold = made("details"), rest = made("ul");
    rest.append(...lines.slice(AT_ONCE).map((line) => item(line, open)));
    fold.append(made("summary", "", `${lines.length - AT_ONCE} more`), rest);
    section.append(fold);
  }
  return section;
}

function item({ value, text, more, links, place }, open) {
  const line = made("li"), [explore, ...others] = links;
  line.append(made("span", "value", value), explore ? link(text, "text", explore, place, open) : made("span", "text", text));
  line.append(...others.map((other) => link(other.tab, "other", other, place, open)));
  if (more) line.append(made("span", "more", more));
  return line;
}

function link(words, name, { href, tab }, place, open) {
  const element = made("a", name, words || "(empty)");
  element.href = href;
  element.title = tab ? `Open in Explore, at ${tab}` : "Open in Explore, with this head in focus";
  element.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    open({ place, tab });
  });
  return element;
}
