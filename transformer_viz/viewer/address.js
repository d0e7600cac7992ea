// @ts-check
// The address of the page: one hand writes it, and in one entry of the browser's history for each page.

/** @type {Map<string, Record<string, any>>} */
const parts = new Map();
let path = "";

/**
 * A part of the query, as of the picture or of the page's boxes; the others stay.
 * @param {string} part
 * @param {Record<string, any>} words a list where a name has several
 */
export function keep(part, words) {
  if (path !== location.pathname) {
    path = location.pathname;
    parts.clear();
  }
  parts.set(part, words);
  const query = queryOf([...parts.values()]);
  if (query !== location.search) history.replaceState(history.state, "", `${location.pathname}${query}${location.hash}`);
}

/** @param {Record<string, any>[]} parts */
export function queryOf(parts) {
  const query = new URLSearchParams();
  for (const [name, word] of parts.flatMap((words) => Object.entries(words))) {
    for (const one of [word].flat()) query.append(name, one);
  }
  return query.size ? `?${query}` : "";
}
