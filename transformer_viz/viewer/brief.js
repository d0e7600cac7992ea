// @ts-check
// A step in a few words: what is large under the tokens, and all that is said while it plays.

import { say, saySentence } from "./language.js";

/** @typedef {[string, string][]} Sentence */

/**
 * @param {{looked: string, weight: number, written: string, isMean: boolean}} step what is looked at most and how much, and
 *   what is written
 * @returns {{rests: Sentence, plays: Sentence}}
 */
export function briefWords({ looked, weight, written, isMean }) {
  const fields = { looked: ["code", looked], share: percentWords(weight), written: ["code", written] };
  return {
    rests: isMean
      ? saySentence("The heads look at {looked} ({share}) and writes {written}.", fields)
      : saySentence("It looks at {looked} ({share}) and writes {written}.", fields),
    plays: saySentence("looks at {looked} · writes {written}", fields),
  };
}

/** What is said when a run has ended, and all its lines are to be seen. */
export const crossing = () => saySentence("Where it looked while it wrote.");

/**
 * Nothing is rounded to what it is not. As `percent_words` in Python.
 * @param {number} share
 * @param {number} [places] behind the point
 * @param {number} [certain] from which on it is all: sums of weights are rounded, a probability is not
 */
export function percentWords(share, places = 0, certain = 1 - 2 ** -24) {
  const percent = 100 * share, least = 10 ** -places, words = (number) => number.toFixed(places);
  if (percent >= 100 - least / 2 && share < certain) return say("over {number} %", { number: words(100 - least) });
  if (percent > 0 && percent <= least / 2) return say("under {number} %", { number: words(least) });
  return say("{number} %", { number: words(rounded(percent / least) * least) });
}

/**
 * A half goes to the even neighbour, as in Python.
 * @param {number} number
 */
export function rounded(number) {
  const below = Math.floor(number);
  return number - below === 0.5 ? below + (below % 2) : Math.round(number);
}

/**
 * As `probability_words` in Python.
 * @param {number} p
 * @param {number} [places]
 */
export const probabilityWords = (p, places = 0) => percentWords(p, places, 1);
