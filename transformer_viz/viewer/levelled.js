// @ts-check
// A run whose mask and weights are level where they stand side by side: one height, one margin above and below, a title each.

import { say } from "./language.js";
import { plainText } from "./sentence.js";

const TITLE_PX = 30;
const LEGEND_PX = 22;
/** Reasons that a line of the legend has room for. */
const A_LINE = 4;
/** Of a letter and of a sign as wide as it is high, as shares of the font's size; and what stands below the labels, in pixels. */
const NARROW_EM = 0.62, WIDE_EM = 1.05, WIDE_FROM = "\u2e80", BELOW_PX = 34;

/** @param {any} run as of `content.py`, with `masks`, the height of each kind's mask */
export function levelled(run) {
  const kinds = Object.entries(run.kinds).map(([name, data]) => [name, levelledKind(data, run.masks?.[name])]);
  return { ...run, kinds: Object.fromEntries(kinds) };
}

function levelledKind(data, height = data.mask.layout.height) {
  const { picture, mask } = data, { wide, narrow } = picture, n = 1 + Object.keys(picture.masked).length;
  const t = TITLE_PX + LEGEND_PX * Math.ceil(n / A_LINE), title = { ...mask.layout.title, text: say("{kind}: weights", { kind: data.title }) };
  // Upright labels of the same letters, for which room is made once: Plotly would make it for each figure by itself.
  const xaxis = { ...wide.layout.xaxis, tickangle: -90, automargin: false }, b = below(xaxis);
  const level = (layout) => ({ ...layout, height, xaxis, margin: { ...layout.margin, t, b } });
  const weights = (one) => ({ ...one, layout: { ...level(one.layout), title } });
  return {
    ...data, picture: { ...picture, wide: weights(wide), narrow: weights(narrow) },
    mask: { ...mask, layout: level(mask.layout) },
  };
}

function below({ ticktext = [], tickfont: { size } }) {
  const width = (label) => [...plainText(label)].reduce((sum, sign) => sum + (sign < WIDE_FROM ? NARROW_EM : WIDE_EM), 0);
  return Math.round(size * Math.max(0, ...ticktext.map(width))) + BELOW_PX;
}
