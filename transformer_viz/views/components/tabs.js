// A row of tabs: one Tab stop, in which the arrows, Home and End go from tab to tab and open it. What is in the open one stands in
// a container of Streamlit's, which is told here that it is a tab's.

export default function ({ parentElement, data, setTriggerValue }) {
  const row = parentElement.querySelector(".tabs"), { control, titles, open } = data;
  if (row.dataset.titles !== titles.join("\n")) {
    row.dataset.titles = titles.join("\n");
    row.replaceChildren(...titles.map((title) => {
      return Object.assign(document.createElement("button"), { type: "button", role: "tab", textContent: title });
    }));
  }
  const mark = (title) => {
    for (const tab of row.children) {
      const isOpen = tab.textContent === title;
      Object.assign(tab, { ariaSelected: isOpen, tabIndex: isOpen ? 0 : -1 });
      if (isOpen) reveal(row, tab);
    }
  };
  const choose = (tab) => {
    if (tab.ariaSelected === "true") return;
    mark(tab.textContent);
    setTriggerValue("chosen", tab.textContent);
  };
  row.onclick = ({ target }) => target.role === "tab" && choose(target);
  row.onkeydown = (event) => {
    const tabs = [...row.children], at = tabs.indexOf(event.target);
    const tab = { ArrowLeft: tabs.at(at - 1), ArrowRight: tabs[(at + 1) % tabs.length], Home: tabs[0], End: tabs.at(-1) }[event.key];
    if (!tab) return;
    // The player has these keys elsewhere.
    event.preventDefault();
    event.stopPropagation();
    tab.focus();
    choose(tab);
  };
  mark(open);
  let frame;
  const tell = () => {
    const panel = document.querySelector(`.st-key-${control}-panel`);
    if (panel) Object.assign(panel, { role: "tabpanel", ariaLabel: open });
    else frame = requestAnimationFrame(tell);
  };
  tell();
  return () => cancelAnimationFrame(frame);
}

// In the row alone, which may be wider than a phone: the page stays where it is.
function reveal(row, tab) {
  const left = tab.offsetLeft, right = left + tab.offsetWidth;
  row.scrollLeft = Math.max(Math.min(row.scrollLeft, left), right - row.clientWidth);
}
