// @ts-check
// What the maps show: weights, or a measure of what counts, beside them or instead; and above the written tokens how much of
// each comes from the source.
import { pieces } from "./sentence.js";

export class Measures {
  constructor(root, choose) {
    this.root = root;
    this.choose = choose;
    this.group = document.createElement("span");
    this.group.className = "measures";
    this.group.hidden = true;
    this.group.setAttribute("role", "group");
    this.group.setAttribute("aria-label", "What the maps show");
    root.querySelector('[data-part="slider"]').before(this.group);
    this.legend = document.createElement("span");
    this.legend.className = "share-legend";
    this.legend.hidden = true;
    for (const [name, words] of [["of-source", "from the source"], ["of-prefix", "from the prefix (written before)"]]) {
      const sign = Object.assign(document.createElement("i"), { className: `share-sign ${name}` });
      this.legend.append(sign, words);
    }
    root.querySelector(".strips").append(this.legend);
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

  // Where all tokens of the output have a share, a bar stands on each: the source's below, hatched above it the prefix's.
  share(tokens, cells) {
    const has = tokens.some(({ share }) => share !== undefined);
    this.root.classList.toggle("with-shares", has);
    this.legend.hidden = !has;
    tokens.forEach(({ share }, place) => has && cells[place]?.style.setProperty("--share", share));
  }
}
