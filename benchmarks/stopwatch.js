// In every measured page from its beginning. `bench.watch(isDrawn)` takes the milliseconds from now, and `bench.opened(isDrawn)`
// those from the beginning of the navigation, until the browser has drawn the first frame in which the condition holds.
(() => {
  const until = (isDrawn, started) => new Promise((done) => {
    const look = () => {
      if (isDrawn()) setTimeout(() => done(performance.now() - started));
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  const watch = (isDrawn, started) => {
    window.took = null;
    until(isDrawn, started).then((took) => { window.took = took; });
  };

  const part = (name) => document.querySelector(`.viewer [data-part="${name}"]`);
  // The run that stands in a chart.
  const runOf = (chart) => chart.dataset.run ?? null;
  const focus = () => [...document.querySelectorAll(".viewer [data-part=focus]")];
  const small = () => [...document.querySelectorAll(".viewer [data-part=mosaics] .chart")];
  const only = (charts, count) => {
    const runs = new Set(charts.map(runOf));
    return charts.length === count && runs.size === 1 ? [...runs][0] : null;
  };
  const focusRun = () => only(focus(), 1);
  const everyRun = () => only([...focus(), ...small()], 4);
  const shows = (text) => part("source")?.textContent.includes(text) ?? false;

  window.bench = {
    // The box of the text, which stands in the shadow of a component where the page is ours.
    box: () => {
      const own = document.querySelector(".st-key-text [data-testid=stBidiComponentIsolated]")?.shadowRoot ?? document;
      return own.querySelector(':is(input, textarea)[aria-label="Source text"]');
    },
    step: () => [...part("output").children].findIndex((cell) => cell.classList.contains("now")),
    rests: () => document.querySelector("[data-test-script-state]").dataset.testScriptState === "notRunning",
    // Presses an arrow key, to the right until the last step and then to the left; gives what says that the step is drawn.
    press: () => {
      document.activeElement?.blur();
      const before = bench.step();
      if (before === 0) bench.key = "ArrowRight";
      if (before === part("output").children.length - 1) bench.key = "ArrowLeft";
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: bench.key, bubbles: true }));
      return () => bench.step() !== before;
    },
    key: "ArrowLeft",
    // The same of another kind, another head, and a pin: what a click or a choice does.
    choose: {
      kind: () => {
        const buttons = [...document.querySelectorAll(".viewer [data-box=kind] button")], isOn = (one) => one.ariaPressed === "true";
        const next = buttons[(buttons.findIndex(isOn) + 1) % buttons.length], host = () => part("focus");
        const before = host();
        next.click();
        return () => isOn(next) && host() !== before;
      },
      head: () => {
        const box = document.querySelector(".viewer [data-box=head]"), heads = [...box.options].filter(({ value }) => /^\d+$/.test(value));
        const { value, text } = heads[(heads.findIndex(({ value }) => value === box.value) + 1) % heads.length];
        box.value = value;
        box.dispatchEvent(new Event("change", { bubbles: true }));
        return () => part("sentence").textContent.includes(text);
      },
      pin: () => {
        const cells = [...part("source").children], isPinned = (one) => one.ariaPressed === "true";
        const next = cells[(cells.findIndex(isPinned) + 1) % cells.length];
        next.click();
        return () => isPinned(next);
      },
    },
    // Keys at even times: one that the page is late for is as late as it is.
    inARow: async (tries, every) => {
      const began = performance.now(), all = [];
      for (let i = 0; i < tries; i += 1) {
        const due = began + i * every;
        await new Promise((go) => setTimeout(go, Math.max(0, due - performance.now())));
        const pressed = bench.press();
        all.push(until(pressed, due));
      }
      return Promise.all(all);
    },
    focusRun,
    everyRun,
    // The bare page has a chart of Streamlit's, of which the one before is still there for a moment.
    plainRun: () => {
      const charts = document.querySelectorAll(".js-plotly-plot");
      return charts.length === 1 ? charts[0]._fullLayout?.meta?.run ?? null : null;
    },
    watch: (isDrawn, started = performance.now()) => watch(isDrawn, started),
    opened: (isDrawn) => watch(isDrawn, 0),
    // Until another run of `text` is drawn.
    ofRun: (text) => {
      const before = everyRun();
      return () => shows(text) && everyRun() !== null && everyRun() !== before;
    },
    // What `watch` waits for once the event has happened.
    on: (target, kind, isIt, isDrawn) =>
      target.addEventListener(kind, function heard(event) {
        if (!isIt(event)) return;
        target.removeEventListener(kind, heard, true);
        window.bench.watch(isDrawn());
      }, true),
  };
})();
