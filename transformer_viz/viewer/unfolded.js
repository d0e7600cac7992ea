// @ts-check
// What a figure is before later steps are reached.
import { numbersOf } from "./arrays.js";

// A figure as it is before the steps after this one: what they will write has no name, and small maps have no rows of theirs.
export function unfoldedFigure({ data, layout }, step) {
  const { pitch_y, rows, block, unwritten = [] } = layout.meta, later = (place) => place > step;
  const named = (axis) => ({
    ...axis,
    ticktext: axis.ticktext.map((name, i) => (later(axis.tickvals[i]) ? "" : name)),
    labelalias: Object.fromEntries(
      Object.entries(axis.labelalias ?? {}).map(([place, name]) => [place, later(place) ? "" : name]),
    ),
  });
  const blanked = (z) => numbersOf(z).map((row, place) => (later((place % pitch_y) * block[0]) ? blank(row) : row));
  // Which head is best is said of all rows.
  const isWhole = !later((rows - 1) * block?.[0]);
  const unstarred = (trace) =>
    isWhole || !trace.text ? trace : { ...trace, text: trace.text.map((name) => name.replace(" ★", "")) };
  return {
    data: pitch_y ? data.map((trace) => (trace.z ? { ...trace, z: blanked(trace.z) } : unstarred(trace))) : data,
    layout: { ...layout, ...Object.fromEntries(unwritten.map((name) => [name, named(layout[name])])) },
  };
}

// No numbers; of a map of codes, the one of an empty cell.
function blank(row) {
  return new row.constructor(row.length).fill(row instanceof Uint8Array ? 0 : NaN);
}
