// The strips of the exported page where a head aligns: a line from each written word to the source word that it comes from, and
// of a word that is pointed at or pinned all its weights.

class Crossing {
  constructor(player, aligned) {
    this.player = player;
    this.aligned = aligned;
    this.pointed = this.pinned = null;
    const { root } = player;
    this.lines = new Lines(root);
    this.lines.offer({ lines: "on", first: "", isPrompt: false, kind: "cross", read: [] });
    this.lines.button.addEventListener("click", () => {
      this.lines.choose(this.lines.isOn ? "off" : "on");
      this.show();
    });
    root.addEventListener("pointerover", (event) => this.point(this.placeOf(event)));
    root.addEventListener("pointerleave", () => this.point(null));
    root.addEventListener("click", (event) => this.pin(this.placeOf(event)));
    root.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.show()).observe(root);
  }

  cells(name) {
    return [...this.player.part(name).children];
  }

  placeOf(event) {
    const cell = event.target.closest(".token"), name = cell?.parentElement.dataset.part;
    const place = name ? this.cells(name).indexOf(cell) : -1;
    if (name === "source") return { query: null, key: place };
    return name === "output" ? { query: place, key: null } : null;
  }

  point(place) {
    this.pointed = place;
    this.show();
  }

  // A second click lets it go.
  pin(place) {
    if (!place) return;
    const isSame = this.pinned?.query === place.query && this.pinned?.key === place.key;
    this.pinned = isSame ? null : place;
    this.player.say();
  }

  key(event) {
    const isSource = event.target.parentElement?.dataset.part === "source";
    if (event.key === "Escape") this.pinned = null;
    else if (isSource && (event.key === "Enter" || event.key === " ")) this.pin(this.placeOf(event));
    else return;
    event.preventDefault();
    this.player.say();
  }

  words() {
    return this.pinned ? this.aligned.words(this.pinned, (name, place) => this.cells(name)[place]?.textContent) : [];
  }

  show() {
    const { step } = this.player, now = this.pointed ?? this.pinned;
    const source = this.cells("source"), output = this.cells("output");
    for (const cell of source) Object.assign(cell, { role: "button", tabIndex: 0 });
    const links = this.aligned.of(now ?? { query: step, key: null });
    const drawn = (now ? links : this.aligned.crossing(step)).map((link) => ({ ...link, from: output[link.query], to: source[link.key] }));
    this.lines.draw(this.lines.pathsOf(drawn), { moves: false, isPreview: Boolean(this.pointed), isThin: !now });
    const isColumn = now && now.query === null, weights = new Map(links.map((link) => [isColumn ? link.query : link.key, link.weight]));
    this.mark(source, isColumn ? null : weights, now?.key);
    this.mark(output, isColumn ? weights : null, now?.query);
  }

  mark(cells, weights, lit) {
    cells.forEach((cell, place) => {
      const weight = weights?.get(place);
      cell.classList.toggle("attended", weight > 0);
      cell.classList.toggle("lit", lit === place);
      if (weight > 0) cell.style.setProperty("--weight", weight);
    });
  }
}
