// What Streamlit's links do not say: that they are the page's navigation, and which of them is of the page that is open. They
// come later than this, and another one is marked when another page opens.

export default function ({ parentElement, data }) {
  parentElement.querySelector("h1").textContent = data.title;
  const row = document.querySelector(".st-key-pages");
  row.role = "navigation";
  row.ariaLabel = "Pages";
  row.__place = data.place;
  row.__changes ??= watched(row);
  mark(row);
}

function watched(row) {
  const changes = new MutationObserver(() => mark(row));
  changes.observe(row, { childList: true, subtree: true });
  return changes;
}

function mark(row) {
  [...row.children].forEach((item, place) => {
    const link = item.querySelector("a"), isHere = place === row.__place;
    item.toggleAttribute("data-here", isHere);
    if (link) link.ariaCurrent = isHere ? "page" : null;
  });
}
