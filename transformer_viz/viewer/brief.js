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
 * Nothing is rounded to what it is not.
 * @param {number} share
 */
export function percentWords(share) {
  const percent = 100 * share;
  if (percent >= 99.5 && share < 1 - 2 ** -24) return say("over {number} %", { number: 99 });
  return percent > 0 && percent <= 0.5 ? say("under {number} %", { number: 1 }) : say("{number} %", { number: rounded(percent) });
}

/**
 * A half goes to the even neighbour, as in Python.
 * @param {number} number
 */
export function rounded(number) {
  const below = Math.floor(number);
  return number - below === 0.5 ? below + (below % 2) : Math.round(number);
}
