// The bridge between the player of a training, its large chart and Python. `Player` is the viewer's, put before this.
//
// Stepping happens here: the figure's frames are applied in the browser, no request is made. Once a moment has rested, it is
// reported to Python.

const PLAYERS = new WeakMap();

export default function ({ parentElement, data, setStateValue }) {
  const root = parentElement.querySelector(".player");
  if (!PLAYERS.has(root)) PLAYERS.set(root, new ChartPlayer(root));
  const me = PLAYERS.get(root);
  me.setStateValue = setStateValue;
  me.update(data);
  me.arrange();
  // Streamlit also calls this of a player that stays, as in chart.js.
  return () => root.isConnected || me.pause();
}

class ChartPlayer extends Player {
  constructor(root) {
    super(root);
    document.addEventListener("chart-drawn", (event) => {
      if (root.isConnected && event.target.closest(".st-key-focus")) this.arrange();
    });
  }

  // With `moved` a step that was reported before, from which Python has moved on, is another one.
  rested() {
    this.setStateValue("step", { run: this.run, step: this.step, moved: this.data.moved });
  }

  get chart() {
    return document.querySelector(".st-key-focus .chart");
  }

  // A figure comes with the step that was current when it was made; the person may be further by now. The chart may also still
  // show the run before, or be there before the words of its run are.
  arrange() {
    if (this.chart?.__drawn?.run === this.run && this.chart.__step !== this.step) this.draw();
  }

  draw() {
    if (this.chart?.__drawn?.run === this.run) this.chart.__go(this.step);
  }
}
