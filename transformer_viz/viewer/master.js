// @ts-check
// The state of the picture, which lives in the browser alone, and how it agrees with a server that answers late.
//
// Each press has a number, and each field knows the press that set it last. The server is told the whole state with the number of
// the newest press, and its answers say up to which number they knew: what was pressed since stays as it was pressed.

/** @typedef {Record<string, any>} State */

export class Master {
  /** @param {string[]} ofRun fields that belong to one run: those of another run are not kept */
  constructor(ofRun = []) {
    this.ofRun = ofRun;
    this.n = 0;
    /** @type {Record<string, number>} */
    this.at = {};
    /** @type {State} */
    this.state = {};
    this.request = -1;
    this.run = null;
  }

  /** @param {State} change */
  press(change) {
    this.n += 1;
    for (const name of Object.keys(change)) this.at[name] = this.n;
    this.state = { ...this.state, ...change };
  }

  /**
   * What the server has decided. A run that is shown already and an answer to no new request change nothing.
   * @param {{run: any, start: State, heard: number, request: number}} answer
   * @returns {boolean} whether anything may be another now
   */
  take({ run, start, heard, request }) {
    const isRun = run !== this.run, isRequest = request > this.request;
    if (!isRun && !isRequest) return false;
    // Words typed since then will bring a run of their own.
    if (this.isLate(heard)) return false;
    this.run = run;
    this.request = Math.max(request, this.request);
    for (const [name, value] of Object.entries(start)) {
      const isOther = isRun && this.ofRun.includes(name);
      if (isOther || (this.at[name] ?? 0) <= heard) this.state = { ...this.state, [name]: value };
    }
    return true;
  }

  /** Whether an answer that knew so many presses is of an older text. @param {number} heard */
  isLate(heard) {
    return (this.at.text ?? 0) > heard;
  }

  /**
   * Another session answers, whose requests begin anew. It gets the state under a new number: Streamlit has sent it the last one
   * already, without asking the page to hear of it.
   * @param {number} request
   */
  begin(request) {
    this.request = request;
    this.n += 1;
  }

  /** What the server is told. */
  told() {
    return { ...this.state, run: this.run, n: this.n };
  }
}
