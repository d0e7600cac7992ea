// @ts-check
// Tells the server the newest state: a press that comes alone once it is drawn, and of presses that follow each other fast the first,
// and the last one once it rests: for each answer Streamlit arranges the whole page, and the picture would wait. What is pressed
// elsewhere on the page finds the newest state with the server, since it is told before that press counts.
import { REST_MS } from "./player.js";

const AGAIN_MS = 50;
const GONE_MS = 5000;

export class Report {
  /** @param {() => any} state gives the newest state */
  constructor(state) {
    this.state = state;
    this.tell = /** @type {(state: any) => void} */ (() => {});
    this.root = /** @type {{isConnected: boolean} | null} */ (null);
    this.told = 0;
    this.heard = 0;
    /** @type {{from: string | null, until: number, hasBegun: boolean} | undefined} */
    this.left = undefined;
    addEventListener("pointerdown", (event) => this.leaves(event) || this.now(), true);
    addEventListener("click", (event) => this.leaves(event), true);
    addEventListener("popstate", () => this.goFrom(null));
  }

  /**
   * The component is on the page, perhaps again; another page may be on its way all the same.
   * @param {(state: any) => void} tell
   * @param {{isConnected: boolean}} root
   * @param {number} heard the newest press that the server knows: it may never have heard what one told that has gone
   */
  begin(tell, root, heard) {
    this.tell = tell;
    this.root = root;
    this.told = heard;
    this.arrived();
  }

  // A run of the page is here, of whichever page.
  arrived() {
    if (this.left) this.left.hasBegun = true;
  }

  // What the server says that it has heard. Where that is less than before, it is another session, as after a break of the
  // connection: it knows nothing of what was pressed, and is told all of it.
  hears(heard) {
    const isOther = heard < this.heard;
    this.heard = heard;
    if (isOther) {
      this.told = heard;
      this.waits ??= setTimeout(() => this.#rested(), REST_MS);
    }
    return isOther;
  }

  soon() {
    if (this.waits) clearTimeout(this.waits);
    else requestAnimationFrame(() => setTimeout(() => this.now(), 0));
    this.waits = setTimeout(() => this.#rested(), REST_MS);
  }

  #rested() {
    this.waits = undefined;
    this.now();
  }

  now() {
    clearTimeout(this.later);
    const state = this.state();
    if (state.n <= this.told || !this.root?.isConnected) return;
    if (this.isLeaving()) {
      this.later = setTimeout(() => this.now(), AGAIN_MS);
      return;
    }
    this.told = state.n;
    this.tell(state);
  }

  // What is told after the press on another page's link, and before that page is there, names the page of before, and Streamlit
  // would come back to it. The state is not lost: this document keeps it, and so does the address.
  leaves(event) {
    const link = event.composedPath().find((one) => one.tagName === "A" && one.href);
    if (!link || link.target === "_blank" || event.ctrlKey || event.metaKey) return false;
    const to = new URL(link.href, document.baseURI);
    // The link of Streamlit's first page says nothing, which is the address of wherever one is.
    const isHere = link.ariaCurrent === "page" || (to.pathname === location.pathname && link.getAttribute("href") !== "");
    if (to.origin !== location.origin || (isHere && !this.left)) return false;
    this.goFrom(location.pathname);
    return true;
  }

  // `from` is the address that another page will not have; null where it is the new one already.
  goFrom(from) {
    this.left = { from, until: performance.now() + GONE_MS, hasBegun: false };
  }

  // Until the component stands on another page. One that does not come within a while is waited for no longer.
  isLeaving() {
    const { left } = this, isThere = left?.hasBegun && location.pathname !== left.from;
    if (isThere || (left && performance.now() > left.until)) this.left = undefined;
    return Boolean(this.left);
  }
}
