// @ts-check
// The boxes for what is in focus: lists, or buttons, all of them in sight.

/** @type {WeakMap<Element, string>} */
const FILLED = new WeakMap();

/** @param {any} box @param {[string | number, string][]} options each with its value and its words */
export function fill(box, options) {
  if (FILLED.get(box) === String(options)) return;
  FILLED.set(box, String(options));
  if (box.tagName === "SELECT") box.replaceChildren(...options.map(([value, text]) => new Option(text, String(value))));
  else box.replaceChildren(...options.map(([value, textContent]) => Object.assign(document.createElement("button"), { type: "button", value, textContent })));
}

/** @param {any} box @param {string} value */
export function choose(box, value) {
  if (box.tagName === "SELECT") box.value = value;
  for (const button of box.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.value === value));
}

/** @param {any} box */
export function valueOf(box) {
  return /^\d+$/.test(box.value) ? Number(box.value) : box.value;
}

// Calls back with the name of a box and what was chosen in it.
export function hear(boxes, chosen) {
  for (const [name, box] of Object.entries(boxes)) {
    box.addEventListener("change", () => chosen(name, valueOf(box)));
    box.addEventListener("click", ({ target }) => target.tagName === "BUTTON" && chosen(name, target.value));
  }
}
