// @ts-check
// A step in a few words: what is large under the tokens, and all that is said while it plays.

import { later, say, saySentence } from "./language.js";

/** @typedef {[string, string][]} Sentence */

/** Of the largest weight: from which share on the second largest is named too. */
const NEARLY = 0.5;
const FIRST = [later("the first"), later("the second"), later("the third"), later("the fourth")];

/**
 * @param {{looks: {text: string, weight: number}[], written: string, head: number | "mean" | "max"}} step what may be looked
 *   at, in its order, and how much; what is written; and which head looks
 * @returns {{rests: Sentence, plays: Sentence}}
 */
export function briefWords({ looks, written, head }) {
  const order = looks.map((_, key) => key).sort((a, b) => looks[b].weight - looks[a].weight), [most, next] = order;
  const isTwin = next !== undefined && looks[next].text === looks[most].text && looks[next].weight >= NEARLY * looks[most].weight;
  const token = named(looks, most), share = percentWords(looks[most].weight);
  const of = isTwin
    ? saySentence("{token} ({share}), nearly as much at {next} ({second})", { token, share, next: which(looks, next), second: percentWords(looks[next].weight) })
    : saySentence("{token} ({share})", { token, share });
  const fields = { looked: of, written: ["code", written] };
  return {
    rests: Number.isInteger(head)
      ? saySentence("Head {head} looks at {looked}, and the model writes {written}.", { ...fields, head: String(Number(head) + 1) })
      : saySentence("The heads look at {looked}, and the model writes {written}.", fields),
    plays: saySentence("looks at {looked} · writes {written}", { ...fields, looked: token }),
  };
}

/**
 * The same while the encoder's maps are seen, which no step changes.
 * @param {string} written
 * @returns {{rests: Sentence, plays: Sentence}}
 */
export function briefWordsOfEncoder(written) {
  const fields = { written: ["code", written] };
  return {
    rests: saySentence("The encoder read the whole source first; now the model writes {written}.", fields),
    plays: saySentence("writes {written}", fields),
  };
}

// A token, and where there are several like it, which of them.
function named(looks, key) {
  const token = ["code", looks[key].text];
  return looks.filter(({ text }) => text === looks[key].text).length > 1 ? saySentence("{which} {token}", { which: which(looks, key), token }) : [token];
}

function which(looks, key) {
  const n = looks.slice(0, key + 1).filter(({ text }) => text === looks[key].text).length;
  return n > FIRST.length ? say("number {n}", { n }) : say(FIRST[n - 1]);
}

/**
 * What is said when a run has ended, and all its lines are to be seen.
 * @param {number | "mean" | "max"} head whose they are
 */
export const crossing = (head) => Number.isInteger(head)
  ? saySentence("Where head {head} looked while the model wrote.", { head: String(Number(head) + 1) })
  : saySentence("Where the heads looked while the model wrote.");

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
