// @ts-check
// Two of one component may be on the page at once: Streamlit draws once more, in a place of its own, what it is about to take away.
// The one that is not shown waits, and takes over where it is the one that stays.

export class Waiting {
  /** @param {(given: any) => any} call the component */
  constructor(call) {
    this.call = call;
    /** @type {{root: Element, given: any} | null} */
    this.other = null;
  }

  /**
   * Whether this place waits: `shown` is that of the one that is shown, and `isOld` whether what comes is older than it.
   * @param {{root: Element, given: any} | null} shown
   * @param {Element} root
   */
  waits(shown, root, given, isOld) {
    if (!shown || shown.root === root || !shown.root.isConnected) return false;
    this.other = isOld ? { root, given } : { root: shown.root, given: shown.given };
    return isOld;
  }

  // One of both has gone; `wasShown` says which.
  gone(root, wasShown) {
    const { other } = this;
    if (wasShown || other?.root === root) this.other = null;
    if (wasShown && other?.root.isConnected) this.call(other.given);
  }
}
