// @ts-check
// The player of a viewer: beside the words of a step, what one may do at it, and what the maps show.
import { Measures } from "./measures.js";
import { Player } from "./player.js";
import { crossing } from "./brief.js";
import { pieces } from "./sentence.js";
import { Ways } from "./ways.js";

/** @type {ViewersPlayer | null} */
let keyed = null;

export class ViewersPlayer extends Player {
  // `root` is the viewer's. `on` hears of steps, ways and measures, and has the numbers of the large map.
  constructor(root, signal, on) {
    super(root.querySelector(".player"), signal, on.keysIn);
    this.on = on;
    this.weights = on.weights;
    this.measures = new Measures(this.root, on.chosenMeasure);
    this.ways = new Ways(this, on.chosenWay);
    // Several viewers on a page: the keys belong to the one that had a hand on it last.
    if (!keyed?.root.isConnected) keyed = this;
    for (const name of ["pointerdown", "focusin"]) root.addEventListener(name, () => { keyed = this; }, { signal });
  }

  update(data) {
    this.measures.show(data);
    super.update(data);
  }

  sayWords() {
    const hadFocus = this.ways.hasFocus;
    super.sayWords();
    this.sayBriefly();
    this.part("sentence").append(...this.measures.words(this.data, this.step));
    this.ways.offer(this.data.ways?.[this.step] ?? {}, this.data.isAsked, hadFocus);
  }

  // Large, in a few words, while all is said small below; a screen reader is told only that.
  sayBriefly() {
    const brief = this.data?.brief?.(this.step), { lines } = this.pointing, room = this.part("brief");
    this.root.classList.toggle("has-brief", Boolean(brief));
    if (!brief) return;
    const isCrossing = lines.hasEnded && lines.shown === "all";
    room.replaceChildren(...pieces(this.timers.play ? brief.plays : isCrossing ? crossing(this.data.head) : brief.rests));
  }

  showPlaying() {
    super.showPlaying();
    this.sayBriefly();
  }

  go(step) {
    const before = this.step;
    this.move(step);
    // Before the words, which end with the question where they stand: what is changed after it the browser arranges anew.
    if (this.step !== before) this.on.moved();
    this.say();
    const isFast = Number(this.part("speed").value) >= 4 && Boolean(this.timers.play);
    if (this.step !== before) this.on.stepped(this.timers.play ? "play" : "step", { by: this.step - before, isHeld: this.isHeld || isFast });
  }

  key(event) {
    if (keyed !== this) return;
    this.isHeld = event.repeat;
    super.key(event);
    this.isHeld = false;
  }

  restyle(looks) {
    for (const [name, isOn] of Object.entries(looks)) this.root.classList.toggle(name, isOn);
  }

  end() {
    this.pause();
    if (keyed === this) keyed = null;
  }
}
