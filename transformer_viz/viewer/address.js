// @ts-check
// The address of the page: one hand writes it, and in one entry of the browser's history for each page.

/** The browser takes as long for an address as for a picture: the picture of a press comes first. */
const LATER_MS = 50;

/** @type {Map<string, Map<string, Record<string, any>>>} by the page's path, and in it by the part */
const pages = new Map();
/** Pages that have said something since their address was written. */
const changed = new Set();
let waits = 0;

/**
 * A part of a page's query, as of the picture or of the page's boxes; the others stay. What is still to be seen of a page while
 * another one's address is there already, as after Back, says nothing of that one.
 * @param {string} page its path, "" that of the first page
 * @param {string} part
 * @param {Record<string, any>} words a list where a name has several
 */
export function keep(page, part, words) {
  const { pathname } = new URL(page || ".", document.baseURI);
  pages.set(pathname, (pages.get(pathname) ?? new Map()).set(part, words));
  changed.add(pathname);
  if (waits) return;
  waits = window.setTimeout(write, LATER_MS);
  // What is pressed next may lead to another page: by then the address of this one is as it should be.
  for (const name of ["pointerdown", "keydown", "pagehide"]) addEventListener(name, write, { capture: true, once: true });
}

function write() {
  clearTimeout(waits);
  waits = 0;
  const parts = changed.has(location.pathname) && pages.get(location.pathname);
  changed.clear();
  // Until the page's boxes have spoken, the address that was opened says more than what is there of it.
  const query = parts && parts.has("boxes") && queryOf([...parts.values()]);
  if (query === false || query === location.search) return;
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
