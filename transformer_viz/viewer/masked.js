// @ts-check
// One run with the mask of the head in focus beside its weights. It is to its page what a viewer is.
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
      ...on, heard: drawn(on.heard), came: drawn(on.came), others: () => this.masks.charts,
      share: () => (window.innerWidth < ONE_COLUMN_PX ? 1 : HALF),
    });
    this.masks = new MaskMap(root.querySelector('[data-part="mask"]'), this.viewer);
  }

  show(run, start = {}) {
    this.viewer.show(run, start);
    this.masks.show(run);
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
