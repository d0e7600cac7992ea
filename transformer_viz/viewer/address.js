// @ts-check
// The address of the page: one hand writes it, and in one entry of the browser's history for each page.

/** The browser takes as long for an address as for a picture: the picture of a press comes first. */
const LATER_MS = 50;

/** @type {Map<string, Record<string, any>>} */
const parts = new Map();
let waits = 0;

// The page of the viewer is the app's first one, whose address has no name. What is still to be seen of it while another page's
// address is there already, as after Back, says nothing of that.
const isHere = () => location.pathname === new URL(".", document.baseURI).pathname;

/**
 * A part of the query, as of the picture or of the page's boxes; the others stay.
 * @param {string} part
 * @param {Record<string, any>} words a list where a name has several
 */
export function keep(part, words) {
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
  if (!isHere() || query === location.search) return;
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
