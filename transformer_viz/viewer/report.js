// @ts-check
// Tells the server the newest state: at once, and then not more often than `EVERY_MS`. What is pressed elsewhere on the page finds
// the newest state with the server, since it is told before that press counts.

const EVERY_MS = 150;
const GONE_MS = 5000;

export class Report {
  /** @param {() => any} state gives the newest state */
  constructor(state) {
    this.state = state;
    this.tell = /** @type {(state: any) => void} */ (() => {});
    this.told = 0;
    addEventListener("pointerdown", (event) => this.leaves(event) || this.now(), true);
    addEventListener("click", (event) => this.leaves(event), true);
    addEventListener("popstate", () => this.goTo(location.pathname));
  }

  // The picture is on the page, perhaps again; another page may be on its way all the same.
  begin(tell) {
    this.tell = tell;
    this.arrived();
  }

  arrived() {
    if (this.left?.to === location.pathname) this.left = undefined;
  }

  soon() {
    if (this.waits) return;
    this.now();
    this.waits = setTimeout(() => {
      this.waits = undefined;
      this.now();
    }, EVERY_MS);
  }

  now() {
    const state = this.state();
    if (state.n <= this.told || this.isLeaving()) return;
    this.told = state.n;
    this.tell(state);
  }

  // What is told after the press on another page's link, and before that page is there, names the page of before, and Streamlit
  // would come back to it. The state is not lost: this document keeps it, and so does the address.
  leaves(event) {
    const link = event.composedPath().find((one) => one.tagName === "A" && one.href);
    if (!link || link.target === "_blank" || event.ctrlKey || event.metaKey) return false;
    const to = new URL(link.href, document.baseURI);
    if (to.origin !== location.origin || (to.pathname === location.pathname && !this.left)) return false;
    this.goTo(to.pathname);
    return true;
  }

  goTo(to) {
    this.left = { to, until: performance.now() + GONE_MS };
  }

  // A page that does not come within a while is waited for no longer.
  isLeaving() {
    if (this.left && performance.now() > this.left.until) this.left = undefined;
    return Boolean(this.left);
  }
}
