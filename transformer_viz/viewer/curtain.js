// @ts-check
// A lesson's question, answered in the picture: the row that it is about is a curtain over the large map. Pointing at it lights
// the column, a press sets a flag there, or paints a cell; once it is drawn aside the flags stay. A press on a token of the source
// does the same.

const SLIDES_MS = 420;

export class Curtain {
  /**
   * @param {HTMLElement} root of the viewer
   * @param {{point: (place: object | null) => void, choose: (way: string) => void}} on `point` lights a place, `choose` is told
   *   what is flagged, and that the curtain is to go
   */
  constructor(root, on) {
    this.on = on;
    /** @type {any} */
    this.asked = null;
    /** @type {number[]} */
    this.flags = [];
    this.room = Object.assign(document.createElement("div"), { className: "asked-row", hidden: true });
    this.cells = Object.assign(document.createElement("div"), { className: "asked-cells" });
    this.look = Object.assign(document.createElement("button"), { type: "button", className: "asked-look" });
    this.room.append(this.cells, this.look);
    this.look.addEventListener("click", (event) => this.#only(event, () => this.#told("look")));
    this.cells.addEventListener("pointerover", ({ target }) => this.#light(target));
    this.cells.addEventListener("focusin", ({ target }) => this.#light(target));
    for (const name of ["pointerleave", "focusout"]) this.cells.addEventListener(name, () => on.point(null));
    this.cells.addEventListener("click", (event) => this.#only(event, () => this.#press(this.#keyOf(event.target))));
    this.room.addEventListener("keydown", (event) => this.#key(event));
    // The map below would pin or light what is under it.
    for (const name of ["pointermove", "pointerdown"]) this.room.addEventListener(name, (event) => event.stopPropagation());
    this.strip = /** @type {HTMLElement} */ (root.querySelector('[data-part="source"]'));
    this.strip?.addEventListener("click", (event) => this.#pressToken(event), { capture: true });
    this.strip?.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") this.#pressToken(event);
    }, { capture: true });
  }

  // What the page says of the question; another question forgets what was flagged.
  update(asked) {
    const was = this.asked, isSame = asked && was && idOf(asked) === idOf(was);
    this.asked = asked ?? null;
    if (!isSame || asked.isOpen) this.flags = asked?.flags ?? [];
    if (isSame && asked.isOpen && !was.isOpen && !this.room.hidden) this.#slide();
    this.#markTokens();
  }

  // Over the row of a map, in the pixels of its chart; nowhere where another kind is shown.
  place(host, kind, at, isHead) {
    const { asked } = this, isHere = asked && asked.row !== null && asked.kind === kind && at && (!asked.isOpen || isHead);
    this.room.hidden = !isHere;
    if (!isHere) return;
    if (this.room.parentElement !== host) host.append(this.room);
    const n = asked.columns.length, top = at.down(asked.row - 0.5), left = at.right(-0.5);
    Object.assign(this.room.style, {
      left: `${left}px`, top: `${top}px`, width: `${at.right(n - 0.5) - left}px`, height: `${at.down(asked.row + 0.5) - top}px`,
    });
    this.#draw(n);
  }

  #draw(n) {
    const { asked, flags, cells, room, look } = this;
    room.classList.toggle("open", asked.isOpen);
    room.classList.toggle("painted", asked.isSeveral);
    cells.role = asked.isOpen ? null : asked.isSeveral ? "group" : "radiogroup";
    cells.ariaLabel = asked.isOpen ? null : asked.words.asks;
    while (cells.children.length > n) cells.lastElementChild?.remove();
    while (cells.children.length < n) cells.append(document.createElement("span"));
    const first = flags[0] ?? 0;
    [...cells.children].forEach((cell, key) => this.#drawCell(/** @type {HTMLElement} */ (cell), key, first));
    look.textContent = asked.words.look;
    look.hidden = asked.isOpen || !(flags.length || asked.isSeveral);
  }

  #drawCell(cell, key, first) {
    const { asked, flags } = this, isOn = flags.includes(key);
    cell.className = isOn ? "flagged" : "";
    cell.textContent = asked.isOpen ? "" : "?";
    if (asked.isOpen) {
      for (const name of ["role", "tabindex", "aria-checked", "aria-label", "title"]) cell.removeAttribute(name);
      return;
    }
    cell.role = asked.isSeveral ? "checkbox" : "radio";
    cell.ariaChecked = String(isOn);
    cell.tabIndex = key === first ? 0 : -1;
    cell.ariaLabel = asked.names[key];
    cell.title = `${asked.names[key]}: ${asked.words.covered}`;
  }

  // Drawn aside, over what has come below it.
  #slide() {
    const ghost = /** @type {HTMLElement} */ (this.room.cloneNode(true));
    ghost.className = "asked-row aside";
    ghost.ariaHidden = "true";
    ghost.inert = true;
    this.room.parentElement?.append(ghost);
    setTimeout(() => ghost.remove(), SLIDES_MS);
  }

  #keyOf(target) {
    return [...this.cells.children].indexOf(target.closest?.(".asked-cells > span"));
  }

  #light(target) {
    const key = this.#keyOf(target);
    if (key >= 0 && !this.asked.isOpen) this.on.point({ kind: this.asked.kind, query: null, key });
  }

  #only(event, then) {
    event.stopPropagation();
    if (!this.asked?.isOpen) then();
  }

  #press(key) {
    if (key < 0 || this.asked.columns[key] === null) return;
    const { asked, flags } = this, isOn = flags.includes(key);
    const others = asked.isSeveral ? flags.filter((one) => one !== key) : [];
    this.flags = isOn ? others : [...others, key].sort((a, b) => a - b);
    if (asked.row !== null && !this.room.hidden) this.#draw(asked.columns.length);
    this.#markTokens();
    this.#told("flag");
  }

  #pressToken(event) {
    const token = event.target.closest?.(".token"), { asked } = this;
    if (!token || !asked || asked.isOpen || !asked.isOfSource) return;
    event.stopPropagation();
    event.preventDefault();
    // A token that is another answer than the one below it has the same flag again.
    this.#press([...this.strip.children].indexOf(token));
  }

  #told(what) {
    const { asked, flags } = this, numbers = flags.map((key) => asked.columns[key]);
    if (what === "look" && asked.isSeveral && !numbers.length) numbers.push(asked.none);
    this.on.choose(`lesson ${what} ${numbers.join("+")}`);
  }

  #key(event) {
    if (this.asked.isOpen || event.ctrlKey || event.metaKey || event.altKey) return;
    const cells = /** @type {HTMLElement[]} */ ([...this.cells.children]), key = this.#keyOf(event.target);
    const to = { ArrowLeft: key - 1, ArrowRight: key + 1, Home: 0, End: cells.length - 1 }[event.key];
    const isPress = event.key === " " || event.key === "Enter";
    if (key < 0 || (to === undefined && !isPress)) {
      // The player's keys are not those of its button.
      if (isPress) event.stopPropagation();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    if (isPress) this.#press(key);
    else if (cells[to]) {
      cells[key].tabIndex = -1;
      cells[to].tabIndex = 0;
      cells[to].focus();
    }
  }

  // The flag on a token of the source, where that is the answer and not only its column.
  #markTokens() {
    const { asked, flags } = this, isOn = Boolean(asked?.isOfSource && !asked.isOpen);
    [...(this.strip?.children ?? [])].forEach((token, place) => token.classList.toggle("flagged", isOn && flags.includes(place)));
  }
}

function idOf({ kind, row, layer, head, columns }) {
  return JSON.stringify([kind, row, layer, head, columns]);
}
