// @ts-check
// The masks in force, each cell with its reason.
import { recoloured } from "./colours.js";
import { say } from "./language.js";

export function maskFigure(kind, { layer, head }, darkened) {
  const { heatmap, legend, layout } = recoloured(kind.mask, darkened);
  const reasons = kind.reasonsOf(layer, Number.isInteger(head) ? head : 0);
  const { rows, columns } = kind;
  const z = [], text = [];
  for (let row = 0; row < rows; row++) {
    const codes = reasons.subarray(row * columns, (row + 1) * columns);
    z.push(codes);
    text.push(Array.from(codes, (code) => kind.mask.words[code]));
  }
  // The legend has an entry for each code of the template; heads of one run need not have them all.
  const codes = Object.keys(kind.mask.words).map(Number), named = legend.filter((_, i) => !i || kind.codes.includes(codes[i]));
  const masked = reasons.reduce((count, code) => count + (code > 0), 0);
  const title = { ...layout.title, text: say("{kind}: {count} of {all} cells masked", { kind: kind.title, count: masked, all: reasons.length }) };
  return { data: [{ ...heatmap, z, text }, ...named], layout: { ...layout, title } };
}
