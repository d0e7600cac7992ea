// @ts-check
// Texts to tokens and back, as the model was trained. A text that it cannot read is told in a sentence.
import { say } from "../../viewer/language.js";

export const SPECIAL = ["<pad>", "<start>", "<end>", "<unk>"];
export const START = 1;
export const END = 2;
const MOST_SHOWN = 40;

export class InputError extends Error {}

// How a text is cut into tokens. Each gets the text and the vocabulary, and gives tokens that need not be in it.
const CUTS = {
  characters: (text) => Array.from(text),
  words: (text) => text.split(/\s+/).filter(Boolean),
  // Words and marks, in the spelling that the vocabulary has; a full stop at the end is left out.
  sentence: (text, words) => {
    const found = text.match(/[^\s,.;:!?"]+|[,.;:!?"]/gu) ?? [];
    while ([".", "!"].includes(found.at(-1))) found.pop();
    return found.map((word) => (words.includes(word) ? word : respelled(word, words)));
  },
  // Parts of German number words, written together, the longest first.
  morphemes: (text, parts) => {
    const words = text.trim().toLowerCase().replaceAll("dreissig", "dreißig").replaceAll(" ", "");
    const one = parts.slice(SPECIAL.length).sort((a, b) => b.length - a.length).join("|");
    return words.match(new RegExp(`${one}|.`, "gsu")) ?? [];
  },
};

// A word of the vocabulary that is the same but for capitals, `ae` for `ä`, `ss` for `ß`, or missing dots; else the word itself.
function respelled(word, words) {
  const folded = (one) => one.toLowerCase().replaceAll("ß", "ss");
  const bare = (one) => folded(one).replace(/[äöü]/g, (letter) => "aou"["äöü".indexOf(letter)]);
  const plain = (one) => folded(one).replace(/[äöü]/g, (letter) => `${"aou"["äöü".indexOf(letter)]}e`);
  const last = (same) => words.findLast((known, id) => id >= SPECIAL.length && same(known));
  return last((known) => plain(known) === plain(word)) ?? last((known) => bare(known) === plain(word))
    ?? last((known) => plain(known) === bare(plain(word))) ?? last((known) => bare(known) === bare(plain(word))) ?? word;
}

export class Text {
  // source, target: the two vocabularies. reading: how texts are cut and joined, how long they may be, and what is right.
  constructor({ source, target, reading }) {
    Object.assign(this, { source, target, reading });
    this.ids = [source, target].map((tokens) => new Map(tokens.map((token, id) => [token, id])));
  }

  // The tokens of a source text.
  symbols(text) {
    const { cut, most, unit, example, isBlankText, refused } = this.reading, [ids] = this.ids;
    if (!text || (!text.trim() && !isBlankText)) throw new InputError(say("The text is empty. Type at most {most} {unit}, such as: {example}", { most, unit, example }));
    const found = refused && text.match(new RegExp(refused[0], "u"));
    if (found) throw new InputError(say(refused[1], { word: `“${found[1]}”` }));
    const symbols = CUTS[cut](text, this.source);
    symbols.forEach((symbol, place) => {
      if (ids.has(symbol) && ids.get(symbol) >= SPECIAL.length) return;
      const known = this.source.slice(SPECIAL.length), names = [...known.slice(0, MOST_SHOWN).map(shown), ...(known.length > MOST_SHOWN ? ["…"] : [])];
      const fields = { symbol: shown(symbol), place: place + 1, unit, count: known.length.toLocaleString("en"), names: names.join(", ") };
      throw new InputError(say("“{symbol}” (number {place}) is none of the {unit} that this model knows. It knows {count}: {names}", fields));
    });
    if (symbols.length > most) {
      const fields = { count: symbols.length, unit, most, more: symbols.length - most };
      throw new InputError(say("The text has {count} {unit}; this model reads at most {most}. Take {more} out.", fields));
    }
    return symbols;
  }

  // What the encoder reads: the text between <start> and <end>.
  encode(text) {
    return [START, ...this.symbols(text).map((symbol) => this.ids[0].get(symbol)), END];
  }

  // Ids of target tokens; `wrong` is the message about one that is not known, with a place for it.
  targetIds(tokens, wrong) {
    return Array.from(tokens, (token) => {
      const id = this.ids[1].get(String(token));
      if (id === undefined) throw new InputError(say(wrong, { token: shown(String(token)) }));
      return id;
    });
  }

  // The text that target tokens spell.
  join(tokens) {
    const text = tokens.filter((token) => !SPECIAL.includes(token)).join(this.reading.between);
    return this.reading.cut === "sentence" ? text.replace(/ (?=[,?])/g, "") : text;
  }

  // What is known of the right answer: `expected` tokens, or null, and for each step the place in the source that it must look
  // at, or null. Some tasks have a rule; of the others the page knows the answers to some texts.
  answer(symbols, nSteps) {
    const { order, by, isAnswer, known } = this.reading.answer, texts = known[symbols.join(" ")];
    const places = order ? ORDERS[order](symbols, this.ids[0], by) : [];
    const keys = texts?.alignment ?? places.map((place) => place + 1);
    const tokens = texts?.expected ?? (isAnswer ? places.map((place) => symbols[place]) : null);
    const alignment = Array.from({ length: nSteps }, (_, step) => keys[step] ?? null);
    return { alignment, expected: tokens && [...tokens, SPECIAL[END]] };
  }
}

// Which symbol of the source is written at each step, where that is a rule.
const ORDERS = {
  copy: (symbols) => [...symbols.keys()],
  reverse: (symbols) => [...symbols.keys()].reverse(),
  shift: (symbols, _, by) => symbols.map((_, place) => (place + by) % symbols.length),
  sort: (symbols, ids) => [...symbols.keys()].sort((a, b) => ids.get(symbols[a]) - ids.get(symbols[b]) || a - b),
};

// A piece of text in a message: its blanks can be seen, and it is not long.
export function shown(text) {
  const cut = text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
  return cut.replace(/[\p{Cc}\p{Cf} ]/gu, (sign) => (sign === " " ? "␣" : `<U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`));
}
