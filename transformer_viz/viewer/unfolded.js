// @ts-check
// What a figure is before later steps are reached.
import { numbersOf } from "./arrays.js";
import { tilesOf } from "./cells.js";

/**
 * What of small maps is still to come at a step, as boxes in cells: left, top, right, bottom. A thinned row is there when its
 * first step is.
 * @param {any} meta of their layout
 * @param {number} step
 */
export function laterOf(meta, step) {
  const first = Math.floor(step / meta.block[0]) + 1;
  return tilesOf(meta).flatMap(({ x, y, columns, rows }) => (first < rows ? [[x - 0.5, y + first - 0.5, x + columns - 0.5, y + rows - 0.5]] : []));
}

/**
 * Whether all rows of small maps are there. Which head is best is said of all of them.
 * @param {any} meta of their layout
 * @param {number} step
 */
export const isWholeAt = ({ rows, block }, step) => (rows - 1) * block[0] <= step;

// A figure as it is before the steps after this one: what they will write has no name, and small maps have no rows of theirs.
export function unfoldedFigure({ data, layout }, step) {
  const { pitch_y, block, unwritten = [] } = layout.meta, later = (place) => place > step;
  const named = (axis) => ({
    ...axis,
    ticktext: axis.ticktext.map((name, i) => (later(axis.tickvals[i]) ? "" : name)),
    labelalias: Object.fromEntries(
      Object.entries(axis.labelalias ?? {}).map(([place, name]) => [place, later(place) ? "" : name]),
    ),
  });
  const blanked = (z) => numbersOf(z).map((row, place) => (later((place % pitch_y) * block[0]) ? blank(row) : row));
  const traces = !pitch_y || isWholeAt(layout.meta, step) ? data : unstarred(data);
  return {
    data: pitch_y ? traces.map((trace) => (trace.z ? { ...trace, z: blanked(trace.z) } : trace)) : data,
    layout: { ...layout, ...Object.fromEntries(unwritten.map((name) => [name, named(layout[name])])) },
  };
}

// The traces of small maps that do not say which head is best.
export const unstarred = (data) =>
  data.map((trace) => (trace.text ? { ...trace, text: trace.text.map((name) => name.replace(" ★", "")) } : trace));

// No numbers; of a map of codes, the one of an empty cell.
function blank(row) {
  return new row.constructor(row.length).fill(row instanceof Uint8Array ? 0 : NaN);
}
