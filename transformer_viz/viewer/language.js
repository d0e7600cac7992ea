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
  const said = Object.hasOwn(words, template) ? words[template] : template;
  return said.replace(/\{(\w+)\}/g, (place, name) => (Object.hasOwn(fields, name) ? String(fields[name]) : place));
}

/**
 * The English text itself: it is only written here, and `say` is asked for it where it is shown.
 * @param {string} template
 */
export function later(template) {
  return template;
}
