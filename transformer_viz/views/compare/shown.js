// A word that is clicked is asked of the head that aligns in its own run, where one is known: a second click lets it go.
// `Aligned` is viewer/aligned.js, put before this.

function begin(root, { aligners }) {
  let pinned = null;
  root.querySelector(".compare").addEventListener("click", (event) => {
    const cell = event.target.closest(".token[data-side]"), given = aligners?.[cell?.dataset.side];
    if (!given) return;
    pinned = pinned === cell ? null : cell;
    for (const other of root.querySelectorAll(".token.pinned, .token.attended")) other.classList.remove("pinned", "attended");
    root.querySelector(".pinned-words")?.remove();
    if (pinned) pin(root, cell, new Aligned(given));
  });
}

function pin(root, cell, aligned) {
  const { side, place, strip } = cell.dataset, isColumn = strip === "reads";
  const at = isColumn ? { query: null, key: +place } : { query: +place, key: null };
  const cellAt = (name, place) => root.querySelector(`[data-side="${side}"][data-strip="${name}"][data-place="${place}"]`);
  cell.classList.add("pinned");
  for (const { query, key, weight } of aligned.of(at)) {
    const other = isColumn ? cellAt("writes", query) : cellAt("reads", key);
    other?.classList.toggle("attended", weight > 0);
    other?.style.setProperty("--weight", weight);
  }
  const words = aligned.words(at, (name, place) => cellAt(name === "source" ? "reads" : "writes", place)?.textContent);
  const said = Object.assign(document.createElement("span"), { className: "pinned-words" });
  said.append(...pieces(words));
  root.querySelector(".sentence").append(said);
}
