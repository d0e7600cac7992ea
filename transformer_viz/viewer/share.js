// @ts-check
// Share: a run as something to take along, made in this browser: its link, a picture, a picture that moves.
import { drawCard, moments } from "./card.js";
import { gifOf } from "./gif.js";
import { say } from "./language.js";

const SIZES = { wide: [1200, 675], square: [1080, 1080] };
const MOVING_PX = 800;
const COPIED_MS = 2000;

export class Share {
  /**
   * @param {HTMLElement} root of the viewer
   * @param {() => import("./card.js").Card | null} cardOf
   * @param {((name: string) => void) | undefined} chosenWay where the page can make one file that runs
   * @param {boolean} hasLink whether the address says what is shown
   */
  constructor(root, cardOf, chosenWay, hasLink = true) {
    this.root = root;
    this.cardOf = cardOf;
    this.button = /** @type {HTMLElement} */ (root.querySelector('[data-part="share"]'));
    this.button.addEventListener("click", () => this.open());
    this.chosenWay = chosenWay;
    this.hasLink = hasLink;
    /** @type {HTMLDialogElement | null} */
    this.room = null;
  }

  open() {
    this.card = this.cardOf();
    if (!this.card) return;
    this.room ??= this.#made();
    this.root.append(this.room);
    this.#draw();
    this.room.showModal();
  }

  #made() {
    const room = document.createElement("dialog"), row = document.createElement("div");
    room.className = "share";
    room.setAttribute("aria-label", say("Share"));
    this.sheet = document.createElement("canvas");
    this.sheet.setAttribute("role", "img");
    const button = (words, act, title) => {
      const made = Object.assign(document.createElement("button"), { type: "button", textContent: words, title });
      made.addEventListener("click", () => act(made));
      row.append(made);
      return made;
    };
    this.size = document.createElement("select");
    this.size.ariaLabel = say("Size");
    this.size.append(new Option(say("wide, 1200 × 675"), "wide"), new Option(say("square, 1080 × 1080"), "square"));
    this.size.addEventListener("change", () => this.#draw());
    row.className = "share-ways";
    if (this.hasLink) button(say("Copy link"), (made) => this.#copy(made), say("The address of this view"));
    button("PNG", () => this.#save("png"), say("This picture"));
    button("GIF", (made) => this.#move(made), say("All steps, one after the other"));
    if (this.chosenWay) {
      button(say("One file that runs"), () => {
        room.close();
        this.chosenWay?.("export");
      }, say("The tab Export has it as a page"));
    }
    row.append(this.size);
    button(say("Close"), () => room.close(), say("Close (Escape)"));
    // Arrows and space belong to what is in front.
    room.addEventListener("keydown", (event) => event.stopPropagation());
    room.addEventListener("click", (event) => event.target === room && room.close());
    room.append(this.sheet, row);
    return room;
  }

  // The card as it is taken along: at its end all lines, before that those of the step.
  #draw() {
    const [width, height] = SIZES[/** @type {"wide" | "square"} */ (this.size.value)];
    Object.assign(this.sheet, { width, height });
    this.sheet.setAttribute("aria-label", say("{title}. {words}", { title: this.card.title, words: this.#words }));
    drawCard(contextOf(this.sheet), this.card, this.card.step);
  }

  get #words() {
    const { step, written, crossing, words } = this.card;
    return step >= written.length ? crossing : words[step].rests;
  }

  async #copy(button) {
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = say("Copied");
    } catch {
      // Not allowed without https: then it stands in the browser's own line.
      button.textContent = say("Copy it from the address line");
    }
    setTimeout(() => { button.textContent = say("Copy link"); }, COPIED_MS);
  }

  #save(format) {
    this.sheet.toBlob((blob) => blob && saved(blob, `${this.card.file}.${format}`), `image/${format}`);
  }

  async #move(button) {
    button.disabled = true;
    button.textContent = say("Making it …");
    const [width, height] = SIZES[/** @type {"wide" | "square"} */ (this.size.value)];
    const moving = await movingPicture(this.card, MOVING_PX, Math.round((MOVING_PX * height) / width));
    saved(new Blob([moving], { type: "image/gif" }), `${this.card.file}.gif`);
    button.textContent = "GIF";
    button.disabled = false;
  }
}

/**
 * The bytes of a card that moves, as a GIF.
 * @param {import("./card.js").Card} card
 * @param {number} width in pixels
 * @param {number} height
 * @param {number} [msOfStep] how long a step is seen; by default shorter the more there are
 */
export async function movingPicture(card, width, height, msOfStep = undefined) {
  const sheet = Object.assign(document.createElement("canvas"), { width, height });
  const context = contextOf(sheet), pause = () => new Promise((go) => setTimeout(go)), frames = [];
  for (const { step, part, ms } of moments(card.written.length, msOfStep)) {
    drawCard(context, card, step, part);
    frames.push({ pixels: context.getImageData(0, 0, width, height).data, ms });
    await pause();
  }
  return gifOf(frames, width, height, pause);
}

const contextOf = (sheet) => {
  const context = sheet.getContext("2d", { willReadFrequently: true });
  context.textAlign = "center";
  return context;
};

function saved(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
