// Guessing a run whose answer is hidden. `Player` is export/page/player.js, put before this.
//
// The browser holds what is revealed and nothing more: every step, forth and back, is asked of Python, which sends the next.

export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".player");
  const me = root.__player ?? (root.__player = new GuessPlayer(root));
  me.setTriggerValue = setTriggerValue;
  me.update(data);
}

class GuessPlayer extends Player {
  constructor(root) {
    super(root);
    this.part("form").addEventListener("submit", (event) => {
      event.preventDefault();
      const token = this.part("token").value;
      if (token) this.go(this.step + 1, { token });
    });
  }

  update(data) {
    const n = data.n_steps + 1;
    // Each token is made anew; a hand on the keyboard stays where it is.
    const place = [...this.part("source").children].indexOf(this.root.getRootNode().activeElement);
    super.update({ ...data, sentences: Array(n).fill(data.question), looked: Array(n).fill(data.looked) });
    if (place >= 0) this.part("source").children[place]?.focus();
    if (this.step !== data.step) this.part("token").value = "";
    this.step = data.step;
    this.say();
    const isOver = data.step === data.n_steps;
    this.part("tally").textContent = data.tally;
    this.part("label").textContent = data.asks;
    // At the end they keep their places, greyed: nothing jumps.
    for (const name of ["token", "guess", "next"]) this.part(name).disabled = isOver;
    for (const name of ["label", "token", "guess"]) this.part(name).hidden = !data.asks;
    for (const name of ["back", "first"]) this.part(name).disabled = data.step <= this.first;
  }

  // A source token is a guess where the model looks; a revealed output token goes back to before it.
  strip(name, tokens, act) {
    const isAsked = this.data.looks_at_source;
    if (name === "source") super.strip(name, tokens, isAsked ? (key) => this.go(this.step + 1, { key }) : null);
    else super.strip(name, tokens, (place) => (place < this.step ? this.go(place) : this.part("token").focus()));
  }

  go(step, guess = null) {
    const to = Math.max(this.first, Math.min(this.data.n_steps, step));
    if (to !== this.step) this.setTriggerValue("reveal", { run: this.run, step: to, guess });
  }

  // The space bar.
  play() {
    this.go(this.step + 1);
  }
}
