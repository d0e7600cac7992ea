// @ts-check
// The address of the page: one hand writes it, and in one entry of the browser's history for each page.

/** The browser takes as long for an address as for a picture: the picture of a press comes first. */
const LATER_MS = 50;

/** @type {Map<string, Record<string, any>>} */
const parts = new Map();
let path = "", waits = 0;

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
  if (waits) return;
  waits = window.setTimeout(write, LATER_MS);
  // What is pressed next may lead to another page: by then the address of this one is as it should be.
  for (const name of ["pointerdown", "keydown", "pagehide"]) addEventListener(name, write, { capture: true, once: true });
}

function write() {
  clearTimeout(waits);
  waits = 0;
  const query = queryOf([...parts.values()]);
  if (path !== location.pathname || query === location.search) return;
  history.replaceState(history.state, "", `${location.pathname}${query}${location.hash}`);
}

/** @param {Record<string, any>[]} parts */
export function queryOf(parts) {
  const query = new URLSearchParams();
  for (const [name, word] of parts.flatMap((words) => Object.entries(words))) {
    for (const one of [word].flat()) query.append(name, one);
  }
  return query.size ? `?${query}` : "";
}
