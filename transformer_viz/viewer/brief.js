// @ts-check
// A step in a few words: what is large under the tokens, and all that is said while it plays.

/** @typedef {[string, string][]} Sentence */

/**
 * @param {{looked: string, weight: number, written: string, isMean: boolean}} step what is looked at most and how much, and
 *   what is written
 * @returns {{rests: Sentence, plays: Sentence}}
 */
export function briefWords({ looked, weight, written, isMean }) {
  const who = isMean ? "The heads look" : "It looks", at = `${who} at `;
  return {
    rests: [["plain", at], ["code", looked], ["plain", ` (${percentWords(weight)}) and writes `], ["code", written], ["plain", "."]],
    plays: [["plain", "looks at "], ["code", looked], ["plain", " · writes "], ["code", written]],
  };
}

/** What is said when a run has ended, and all its lines are to be seen. */
export const CROSSING = /** @type {Sentence} */ ([["plain", "Where it looked while it wrote."]]);

/**
 * Nothing is rounded to what it is not.
 * @param {number} share
 */
export function percentWords(share) {
  const percent = 100 * share;
  if (percent >= 99.5 && share < 1 - 2 ** -24) return "over 99 %";
  return percent > 0 && percent <= 0.5 ? "under 1 %" : `${rounded(percent)} %`;
}

/**
 * A half goes to the even neighbour, as in Python.
 * @param {number} number
 */
export function rounded(number) {
  const below = Math.floor(number);
  return number - below === 0.5 ? below + (below % 2) : Math.round(number);
}
