// @ts-check
// Presses that the server hears of, as a state: of two events under way at once Streamlit keeps the newer one, and a state comes
// again with the next press.

const MOST_PRESSES = 20;
let last = 0;

/**
 * The newest presses, each with a number that is higher than that of any before.
 * @template W
 * @param {{n: number, what: W}[]} presses of before
 * @param {W} what was pressed now
 */
export function withPress(presses, what) {
  // Also of what is mounted anew, and knows nothing of those before.
  last = Math.max(last + 1, Date.now());
  return [...presses, { n: last, what }].slice(-MOST_PRESSES);
}
