// @ts-check
// The colours of a theme, and the scale of a map's colours.

// A copy of a template in which each of these colours is replaced by its other one.
export function recoloured(part, colours) {
  if (typeof part === "string") return Object.hasOwn(colours, part) ? colours[part] : part;
  if (Array.isArray(part)) return part.map((entry) => recoloured(entry, colours));
  if (part === null || typeof part !== "object") return part;
  return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, recoloured(value, colours)]));
}

// A colour axis whose last colour is this weight.
export function upTo(most, axis) {
  const ticktext = ["0", short(most / 2), short(most)];
  return { ...axis, cmax: most, colorbar: { ...axis.colorbar, tickvals: [0, most / 2, most], ticktext } };
}

function short(number) {
  return String(Number(number.toPrecision(2)));
}

const SHADES = new WeakMap();

// 256 shades of a colour scale, from its first colour to its last, as Plotly mixes them.
export function shadesOf(scale) {
  const known = SHADES.get(scale);
  if (known) return known;
  const stops = scale.map(([place, colour]) => [place, channels(colour)]);
  const shades = Array.from({ length: 256 }, (_, i) => {
    const share = i / 255, next = stops.findIndex(([place]) => place >= share);
    const [[to, last], [from, first]] = [stops[Math.max(1, next)], stops[Math.max(1, next) - 1]];
    const part = to > from ? (share - from) / (to - from) : 1;
    return `rgb(${first.map((channel, k) => Math.round(channel + part * (last[k] - channel))).join(", ")})`;
  });
  SHADES.set(scale, shades);
  return shades;
}

// `#1c2430` or `rgb(28, 36, 48)` as three numbers.
function channels(colour) {
  if (!colour.startsWith("#")) return (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  const digits = colour.length === 4 ? [...colour.slice(1)].map((digit) => digit + digit) : colour.slice(1).match(/../g) ?? [];
  return digits.slice(0, 3).map((pair) => parseInt(pair, 16));
}
