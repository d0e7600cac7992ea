// @ts-check
// What a viewer shows of a run, and what of it a run has.

/** @typedef {number | "mean" | "max"} Head */
/** @typedef {[number | null, number | null] | []} Pin */
/** @typedef {"auto" | "step" | "all" | "none"} Lines */
/**
 * Numbers count from 0; a layer is called by its own number, since not every run has all.
 * @typedef {{run: string, kind: string, layer: number, head: Head, step: number, pin: Pin, lines: Lines,
 *            measure: string}} State
 */

export const WEIGHTS = "weights";

/**
 * The state nearest to this one that a run has. A pin is of a kind, so that of another is let go.
 * @param {{steps: number, kinds: Record<string, any>, measures?: {value: string}[]}} run
 * @param {Partial<State>} wanted
 * @returns {Omit<State, "run">}
 */
export function clamped({ steps, kinds, measures }, wanted) {
  const kind = Object.hasOwn(kinds, wanted.kind ?? "") ? /** @type {string} */ (wanted.kind) : firstKind(kinds);
  const { numbers, heads, rows, columns } = kinds[kind], { head = 0, layer, step = 0, pin = [] } = wanted;
  return {
    kind,
    layer: numbers.includes(layer) ? layer : numbers[0],
    head: typeof head === "string" && ["mean", "max"].includes(head) ? head : within(head, heads),
    step: within(step, steps),
    pin: kind === wanted.kind ? pinOf(pin, [rows, columns]) : [],
    lines: wanted.lines && ["step", "all", "none"].includes(wanted.lines) ? wanted.lines : "auto",
    measure: measures?.some(({ value }) => value === wanted.measure) ? /** @type {string} */ (wanted.measure) : WEIGHTS,
  };
}

function firstKind(kinds) {
  return Object.hasOwn(kinds, "cross") ? "cross" : Object.keys(kinds).at(-1);
}

function within(number, n) {
  return number === Infinity ? n - 1 : Number.isInteger(number) ? Math.max(0, Math.min(n - 1, number)) : 0;
}

function pinOf(pin, sizes) {
  const isPlace = (place, i) => place === null || (Number.isInteger(place) && place >= 0 && place < sizes[i]);
  return pin.length === 2 && pin.every(isPlace) && pin.some((place) => place !== null) ? pin : [];
}
