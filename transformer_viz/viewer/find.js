// @ts-check
// The box that finds a token of a long text, and the button that shows the whole map.
import { say } from "./language.js";
import { foundIn } from "./windows.js";

export class Find {
  /** @type {{step?: number, key?: number}[]} */
  #found = [];
  #at = -1;
  #texts = { written: [], read: [] };

  /**
   * @param {HTMLElement} room
   * @param {{go: (place: {step?: number, key?: number}) => void, whole: (isIt: boolean) => void}} on
   */
  constructor(room, { go, whole }) {
    this.room = room;
    this.go = go;
    this.box = /** @type {HTMLInputElement} */ (room.querySelector("input"));
    this.count = /** @type {HTMLElement} */ (room.querySelector("output"));
    const button = /** @type {HTMLElement} */ (room.querySelector("button"));
    this.box.addEventListener("input", () => this.#search());
    this.box.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter") this.#next(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") this.box.blur();
    });
    button.addEventListener("click", () => {
      const isWhole = button.ariaPressed !== "true";
      button.ariaPressed = String(isWhole);
      whole(isWhole);
    });
  }

  // `written` are the tokens that are steps, `read` those that are columns alone.
  show(isLong, written, read) {
    this.room.hidden = !isLong;
    if (!isLong || (String(written) === String(this.#texts.written) && String(read) === String(this.#texts.read))) return;
    this.#texts = { written, read };
    this.#search({ goes: false });
  }

  #search({ goes = true } = {}) {
    const { written, read } = this.#texts, words = this.box.value;
    this.#found = [...foundIn(written, words).map((step) => ({ step })), ...foundIn(read, words).map((key) => ({ key }))];
    this.#at = -1;
    if (goes && this.#found.length) this.#next(1);
    else this.#say();
  }

  #next(by) {
    const n = this.#found.length;
    if (!n) return this.#say();
    this.#at = (this.#at + by + n) % n;
    this.#say();
    return this.go(this.#found[this.#at]);
  }

  #say() {
    const n = this.#found.length;
    this.count.textContent = !this.box.value.trim() ? "" : !n ? say("not there") : this.#at < 0 ? say("{count} found", { count: n }) : say("{place} of {count}", { place: this.#at + 1, count: n });
  }
}
