// @ts-check
// What the maps show: weights, or a measure of what counts, beside them or instead.
import { say } from "./language.js";
import { pieces } from "./sentence.js";

export class Measures {
  constructor(root, choose) {
    this.root = root;
    this.choose = choose;
    this.group = document.createElement("span");
    this.group.className = "measures";
    this.group.hidden = true;
    this.group.setAttribute("role", "group");
    this.group.setAttribute("aria-label", say("What the maps show"));
    root.querySelector('[data-part="slider"]').before(this.group);
  }

  // A page without the switch says nothing of it.
  show({ measure, measures }) {
    this.group.hidden = !measure;
    if (!measure) return;
    const offered = measures.map(({ value }) => value).join();
    if (this.offered !== offered) this.group.replaceChildren(...measures.map((each) => this.button(each)));
    this.offered = offered;
    for (const button of this.group.children) button.setAttribute("aria-pressed", button.value === measure);
  }

  button({ value, words, title }) {
    const button = Object.assign(document.createElement("button"), { type: "button", value, textContent: words, title });
    button.addEventListener("click", () => button.getAttribute("aria-pressed") !== "true" && this.choose(value));
    return button;
  }

  // What it says of a step, on a line of its own: the pictures below do not move from step to step.
  words({ measured, terms }, step) {
    if (!measured) return [];
    const line = Object.assign(document.createElement("span"), { className: "measured" });
    line.append(" ", ...pieces(measured[step] ?? [], terms));
    return [line];
  }
}
