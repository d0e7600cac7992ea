// @ts-check
// What is said, in the language of the page: `language.py` makes a page's words, and `docs.catalogue` finds what scripts say.

/** @type {Record<string, string>} */
let words = {};

/**
 * From here on all that is said is in this language; without words it is English.
 * @param {Record<string, string>} [own] translations by the English text
 */
export function speak(own = {}) {
  words = own;
}

/**
 * A text in the language of the page, with its places filled in.
 * @param {string} template the English text, in double quotes in the call itself, with places such as `{count}`
 * @param {Record<string, unknown>} [fields] what goes into its places
 */
export function say(template, fields = {}) {
  return translated(template).replace(/\{(\w+)\}/g, (place, name) => (Object.hasOwn(fields, name) ? String(fields[name]) : place));
}

/**
 * `say` of a sentence: a place may be plain words, a piece `[style, text]`, or several pieces.
 * @param {string} template
 * @param {Record<string, any>} [fields]
 * @returns {[string, string][]}
 */
export function saySentence(template, fields = {}) {
  /** @type {[string, string][]} */
  const found = [];
  const add = (style, text) => {
    if (style === "plain" && found.at(-1)?.[0] === "plain") found[found.length - 1] = ["plain", found[found.length - 1][1] + text];
    else if (text || style !== "plain") found.push([style, text]);
  };
  for (const part of translated(template).split(/(\{\w+\})/)) {
    const name = part.slice(1, -1), isPlace = part.startsWith("{") && Object.hasOwn(fields, name);
    for (const [style, text] of piecesOf(isPlace ? fields[name] : part)) add(style, text);
  }
  return found;
}

/**
 * Several pieces or sentences one after the other, as `a, b, c`.
 * @param {any[]} parts
 */
export function enumerated(parts) {
  const [first = [], ...others] = parts.map(piecesOf);
  return others.reduce((names, name) => saySentence("{names}, {name}", { names, name }), first);
}

/** @returns {[string, string][]} */
function piecesOf(field) {
  if (!Array.isArray(field)) return [["plain", String(field)]];
  return typeof field[0] === "string" ? [/** @type {[string, string]} */ (/** @type {unknown} */ (field))] : field;
}

function translated(template) {
  return Object.hasOwn(words, template) ? words[template] : template;
}

/**
 * The English text itself: it is only written here, and `say` is asked for it where it is shown.
 * @param {string} template
 */
export function later(template) {
  return template;
}
