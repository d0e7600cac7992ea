// @ts-check
// A − B of the head in focus, the numbers filled into the figure that Python laid out (`page_templates.difference_template`). What
// it draws is what `figures.difference` draws as its third map.
import { outline } from "./secondmap.js";

const IN_A = 1, IN_B = 2, IN_BOTH = 3;

/**
 * @param {any} parts of a kind
 * @param {{weights: ArrayLike<number>, reasons: ArrayLike<number>, columns: number}} a the head of A, row after row
 * @param {{weights: ArrayLike<number>, reasons: ArrayLike<number>, columns: number}} b that of B
 */
export function differenceFigure({ pairs, numbers, crossed, both, broken, absent }, layout, a, b) {
  const { difference, masked, here } = laidUpon(pairs, a, b), columns = pairs[1].length;
  const where = (is) => Uint8Array.from(masked, (code, i) => Number(is(code, difference[i], here[i])));
  const cells = (marked) => inRows(Float32Array.from(marked, (is) => (is ? 1 : NaN)), columns);
  const isOne = where((code) => code === IN_A || code === IN_B), isBoth = where((code, value) => code === IN_BOTH && !Number.isNaN(value));
  const isBroken = where((_, value, isHere) => isHere && Number.isNaN(value));
  const [grey, hatch] = both, rows = pairs[0].length;
  return {
    data: [
      ...Object.entries(numbers).map(([code, trace]) =>
        ({ ...trace, z: inRows(difference.map((value, i) => (masked[i] === Number(code) ? value : NaN)), columns) })),
      { ...crossed, ...outline(isOne, columns, rows) },
      { ...grey, z: cells(isBoth) }, { ...hatch, ...outline(isBoth, columns, rows) },
      { ...broken, z: cells(isBroken) },
      ...absent,
    ],
    layout,
    farthest: farthestOf(difference, columns),
  };
}

// Both maps upon each other, a cell for each pair of rows and of columns: A − B, who masks it, and whether both have it.
function laidUpon([rows, columns], a, b) {
  const size = rows.length * columns.length, difference = new Float32Array(size).fill(NaN);
  const masked = new Uint8Array(size), here = new Uint8Array(size);
  rows.forEach(([aRow, bRow], row) => columns.forEach(([aColumn, bColumn], column) => {
    if ([aRow, bRow, aColumn, bColumn].includes(null)) return;
    const at = row * columns.length + column, inA = aRow * a.columns + aColumn, inB = bRow * b.columns + bColumn;
    here[at] = 1;
    difference[at] = a.weights[inA] - b.weights[inB];
    masked[at] = (a.reasons[inA] ? IN_A : 0) | (b.reasons[inB] ? IN_B : 0);
  }));
  return { difference, masked, here };
}

function inRows(values, columns) {
  return Array.from({ length: values.length / columns }, (_, row) => values.subarray(row * columns, (row + 1) * columns));
}

// The row and the column of the largest difference, the first of equals; null where nothing differs.
function farthestOf(difference, columns) {
  let place = -1, most = 0;
  difference.forEach((value, i) => { if (Math.abs(value) > most) [place, most] = [i, Math.abs(value)]; });
  return place < 0 ? null : { row: Math.floor(place / columns), column: place % columns };
}
