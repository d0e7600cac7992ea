// @ts-check
// One run with the mask of the head in focus beside its weights. It is to its page what a viewer is.
import { levelled } from "./levelled.js";
import { MaskMap } from "./maskmap.js";
import { ONE_COLUMN_PX } from "./pair.js";
import { Viewer } from "./viewer.js";

/** Of the window, that each of both maps has. */
const HALF = 0.48;

export class Masked {
  /**
   * @param {HTMLElement} root
   * @param {Record<string, any>} on as of `Viewer`
   */
  constructor(root, on) {
    const drawn = (told) => (...what) => {
      this.masks.draw();
      told?.(...what);
    };
    this.viewer = new Viewer(root.querySelector(".viewer"), {
      ...on, heard: drawn(on.heard), came: drawn(on.came), others: () => this.masks.charts, hasWindow: false,
      share: () => (window.innerWidth < ONE_COLUMN_PX ? 1 : HALF),
    });
    this.masks = new MaskMap(root.querySelector('[data-part="mask"]'), this.viewer);
  }

  show(run, start = {}) {
    if (run !== this.given) this.run = levelled(run);
    this.given = run;
    this.viewer.show(this.run, start);
    this.masks.show(this.run);
  }

  get state() {
    return this.viewer.state;
  }

  get isAwaited() {
    return this.viewer.isAwaited;
  }

  part(name) {
    return this.viewer.part(name);
  }

  restyle(looks) {
    this.viewer.restyle(looks);
    this.masks.draw();
  }

  draw() {
    this.viewer.draw();
    this.masks.draw();
  }

  end() {
    this.viewer.end();
    this.masks.end();
  }
}
