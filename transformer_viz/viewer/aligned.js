// @ts-check
// The head that aligns, where one is chosen: of each word that was written, the words that it comes from. A place is {query,
// key}: a written word (key null), a source word (query null), or both.
import { unpacked } from "./arrays.js";
import { enumerated, say, saySentence } from "./language.js";

// Of a word with several others, those with less weight are not named.
const NAMED = { least: 0.1, most: 3 };

export class Aligned {
  constructor({ label, weights }) {
    this.label = label;
    const { values, shape } = unpacked(weights);
    [this.rows, this.columns] = shape;
    this.at = (query, key) => values[query * shape[1] + key];
  }

  // The source word that a written word looks at most; null for a row without numbers.
  best(query) {
    let best = null;
    for (let key = 0; key < this.columns; key += 1) {
      if (this.at(query, key) > (best === null ? 0 : this.at(query, best))) best = key;
    }
    return best;
  }

  link(query, key) {
    return { query, key, weight: this.at(query, key), isAside: false };
  }

  // All weights of a word, of either side; of both, the others step aside.
  of({ query, key }) {
    const isColumn = query === null;
    return Array.from({ length: isColumn ? this.rows : this.columns }, (_, place) =>
      isColumn ? this.link(place, key) : { ...this.link(query, place), isAside: key !== null && key !== place });
  }

  // Each word with the one that it comes from, as far as the step.
  crossing(step) {
    const rows = Array.from({ length: Math.min(step + 1, this.rows) }, (_, query) => [query, this.best(query)]);
    return rows.filter(([, key]) => key !== null).map(([query, key]) => this.link(query, key));
  }

  // What a pinned word goes with, as pieces of the sentence: where it comes from, or where it went.
  words({ query, key }, name) {
    const isWritten = query !== null;
    const isNamed = (link) => (isWritten ? link.weight >= NAMED.least : this.best(link.query) === key);
    const links = this.of({ query, key: isWritten ? null : key }).filter(isNamed);
    const found = links.sort((a, b) => b.weight - a.weight).slice(0, NAMED.most);
    const others = enumerated(found.map((link) => {
      const word = ["code", isWritten ? name("source", link.key) : name("output", link.query)];
      return saySentence("{word} {weight}", { word, weight: weightWords(link.weight) });
    }));
    const fields = { word: ["code", isWritten ? name("output", query) : name("source", key)], head: this.label };
    const all = others.length ? others : say("nothing");
    const said = isWritten ? saySentence("{word} ← {links}, says {head}", { ...fields, links: all }) : saySentence("{word} → {links}, says {head}", { ...fields, links: all });
    return [["strong", say(" Pinned: ")], ...said];
  }
}

// Two places; what is not everything is not said to be, nor what is not nothing.
export function weightWords(weight) {
  if (Number.isNaN(weight)) return say("not a number");
  if (weight > 0 && weight < 0.005) return "< 0.01";
  return weight < 1 && weight >= 0.995 ? "> 0.99" : weight.toFixed(2);
}
