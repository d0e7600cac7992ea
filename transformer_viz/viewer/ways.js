// @ts-check
// What one may do at a step: answers stand behind their question, and ways on beside the few words of the step, or where there
// are none among the controls.
import { say } from "./language.js";

export class Ways {
  constructor(player, choose) {
    this.player = player;
    this.choose = choose;
    this.room = Object.assign(document.createElement("span"), { className: "ways", hidden: true });
    this.room.role = "group";
    this.shown = "";
  }

  get hasFocus() {
    return this.room.contains(/** @type {Document | ShadowRoot} */ (this.player.root.getRootNode()).activeElement);
  }

  // `ways` are the words of each by its name. The keyboard stays where the buttons were.
  offer(ways, isAsked, hadFocus) {
    this.room.ariaLabel = isAsked ? say("Answers") : say("What one may do here");
    const brief = this.player.part("brief"), hint = this.player.part("hint");
    const isBrief = this.player.root.classList.contains("has-brief");
    if (isAsked) this.player.part("sentence").append(this.room);
    // Not touched where it stands already: the browser would arrange the page anew.
    else if (isBrief && brief.nextElementSibling !== this.room) brief.after(this.room);
    else if (!isBrief && hint.previousElementSibling !== this.room) hint.before(this.room);
    const shown = JSON.stringify(ways);
    if (this.shown !== shown) {
      this.shown = shown;
      this.room.replaceChildren(...Object.entries(ways).map(([way, words]) => this.#button(way, words)));
      this.room.hidden = !this.room.children.length;
    }
    this.player.root.classList.toggle("has-answers", Boolean(isAsked) && !this.room.hidden);
    if (hadFocus) (/** @type {HTMLElement | null} */ (this.room.firstElementChild) ?? this.player.part("play")).focus();
  }

  #button(way, words) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: words });
    button.addEventListener("click", () => this.choose(way));
    return button;
  }
}
