// @ts-check
// The map of a measure beside the weights, the numbers filled into the traces that Python laid out: numbers, what cannot be asked,
// dots over that, and signs.

const SIGN_FROM = 0.04;
const PALE_UP_TO = 0.6;

// `values` are (row, column), of which those before `until` are there.
export function secondTraces({ numbers, greys, dots, signs, full, isByRow, hasLater }, values, { rows, columns, until }) {
  const shown = isByRow ? sharesOfRows(values, columns) : values;
  const grid = (pick) => Array.from({ length: rows }, (_, row) => Float32Array.from({ length: columns }, (_, column) =>
    row < until ? pick(shown[row * columns + column], row, column) : NaN));
  const flat = ({ isLater, trace }) => ({
    ...trace,
    z: grid((value, row, column) => (Number.isNaN(value) && isLater === (hasLater && column > row) ? 1 : NaN)),
  });
  return [
    { ...numbers, z: grid((value) => value) },
    ...greys.map(flat),
    ...(dots ? [{ ...dots, ...outlineOf(shown, columns, until) }] : []),
    ...(signs ? [{ ...signs.trace, ...signsOf(signs, shown, columns, until, full) }] : []),
  ];
}

function sharesOfRows(values, columns) {
  const shares = Float32Array.from(values);
  for (let from = 0; from < shares.length; from += columns) {
    const row = shares.subarray(from, from + columns), most = row.reduce((most, value) => (value > most ? value : most), 0) || 1;
    row.forEach((value, i) => { row[i] = value / most; });
  }
  return shares;
}

function outlineOf(values, columns, until) {
  return outline(Uint8Array.from(values, (value) => Number(Number.isNaN(value))), columns, until);
}

// Rectangles around each row's runs of marked cells, null between two.
export function outline(marked, columns, until) {
  const x = [], y = [];
  for (let row = 0; row < until; row++) {
    for (let column = 0; column < columns; column++) {
      if (!marked[row * columns + column]) continue;
      const left = column - 0.5;
      while (column < columns && marked[row * columns + column]) column++;
      const right = column - 0.5;
      x.push(left, right, right, left, left, null);
      y.push(row - 0.5, row - 0.5, row + 0.5, row + 0.5, row - 0.5, null);
    }
  }
  return { x, y };
}

// A minus on each cell clearly below 0, so that nobody depends on its colour.
function signsOf({ trace, inks: [ink, paper] }, values, columns, until, full) {
  const places = [...values.keys()].filter((i) => i < until * columns && values[i] / full <= -SIGN_FROM);
  const color = places.map((i) => (values[i] / full > -PALE_UP_TO ? ink : paper));
  return {
    x: places.map((i) => i % columns), y: places.map((i) => Math.floor(i / columns)), text: places.map(() => "−"),
    textfont: { ...trace.textfont, color },
  };
}
