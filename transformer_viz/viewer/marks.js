// @ts-check
// What is marked over a chart, as SVG: Plotly would draw the whole chart anew for a shape of its own.

const INK = "var(--st-text-color)";
const LOOKS = {
  pinned: { fill: "none", stroke: INK, "stroke-width": 2, "stroke-dasharray": "5 3" },
  pointed: { fill: INK, "fill-opacity": 0.12, stroke: INK, "stroke-width": 1.5 },
};
// What is still to come, covered; the row of the step, a thin ring on the right key of each row and a thick one on that of the
// step, the tiles in focus, and where a head stands at a moment.
const OWN = ["later", "row", "rings", "ring", "tile", "now", "dot"];
// An outline of the paper hides the same words below it.
const CAPTION = { "dominant-baseline": "central", "paint-order": "stroke", "stroke-width": 3 };

export function svg(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  change(element, attributes);
  return element;
}

// Gives an element these attributes. To say the same again would have the browser look at it anew.
export function change(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (element.getAttribute(key) !== String(value)) element.setAttribute(key, value);
  }
}

// Draws the mark of this name as a path, in pixels of the chart.
export function mark(host, name, d, looks = {}) {
  const picture = host.querySelector(":scope > .marks") ?? marksOver(host);
  const path = picture.querySelector(`.${name}`);
  change(path, { d, ...looks });
}

// What is pinned and pointed at is not marked any more.
export function unmark(host) {
  for (const name of Object.keys(LOOKS)) host.querySelector(`:scope > .marks > .${name}`)?.setAttribute("d", "");
}

// Words over a chart, in its pixels: [x, y, text]. They stand around their place, or begin or end there.
export function caption(host, words, { color, size, family, ground }, anchor = "middle") {
  const picture = host.querySelector(":scope > .marks") ?? marksOver(host);
  picture.querySelectorAll("text").forEach((text) => text.remove());
  picture.append(...words.map(([x, y, text]) => {
    const looks = { ...CAPTION, "text-anchor": anchor, x, y, fill: color, stroke: ground, "font-size": size, "font-family": family };
    return Object.assign(svg("text", looks), { textContent: text });
  }));
}

// A rectangle and a circle as parts of a path.
export const rectangle = (left, top, right, bottom) => `M${left} ${top}H${right}V${bottom}H${left}z`;
export const circle = (x, y, radius) => `M${x - radius} ${y}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0`;

function marksOver(host) {
  const picture = svg("svg", { class: "marks", "aria-hidden": "true" });
  Object.assign(picture.style, { position: "absolute", inset: 0, width: "100%", height: "100%", pointerEvents: "none", zIndex: 2 });
  picture.append(...OWN.map((name) => svg("path", { class: name, d: "", fill: "none" })));
  picture.append(...Object.entries(LOOKS).map(([name, looks]) => svg("path", { class: name, d: "", ...looks })));
  // Small maps have thin marks.
  if (host.layout.meta?.pitch_x) for (const path of picture.querySelectorAll(".pinned, .pointed")) path.setAttribute("stroke-width", "1");
  if (getComputedStyle(host).position === "static") host.style.position = "relative";
  host.append(picture);
  return picture;
}
