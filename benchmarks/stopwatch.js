// In every measured page from its beginning. `bench.watch(marks)` takes the milliseconds from now, and `bench.opened(marks)`
// those from the beginning of the navigation, until each condition holds and the browser has painted the frame after.
(() => {
  const watch = (marks, started) => {
    const took = Object.fromEntries(Object.keys(marks).map((name) => [name, null]));
    window.took = null;
    const look = () => {
      for (const [name, holds] of Object.entries(marks)) {
        if (took[name] !== null || !holds()) continue;
        took[name] = NaN;
        requestAnimationFrame(() => setTimeout(() => {
          took[name] = performance.now() - started;
          if (Object.values(took).every((ms) => ms > 0)) window.took = took;
        }));
      }
      if (Object.values(took).some((ms) => ms === null)) requestAnimationFrame(look);
    };
    look();
  };

  // The player's strips stand in the shadow of a component.
  const part = (name) => {
    for (const host of document.querySelectorAll(".st-key-player-area *")) {
      const found = host.shadowRoot?.querySelector(`[data-part="${name}"]`);
      if (found) return found;
    }
    return document.querySelector(`[data-part="${name}"]`);
  };
  // What stands in a chart; null while it is being drawn.
  const runOf = (chart) => chart.__drawn?.run ?? null;
  const all = (key) => [...document.querySelectorAll(`[class*="st-key-${key}"] .chart`)];
  const only = (charts, count) => {
    const runs = new Set(charts.map(runOf));
    return charts.length === count && runs.size === 1 ? [...runs][0] : null;
  };
  const focusRun = () => only(all("focus"), 1);
  const everyRun = () => only([...all("focus"), ...all("mosaic-")], 4);
  const shows = (text) => part("source")?.textContent.includes(text) ?? false;

  window.bench = {
    focusRun,
    everyRun,
    shows,
    // The bare page has a chart of Streamlit's, of which the one before is still there for a moment.
    plainRun: () => {
      const charts = document.querySelectorAll(".js-plotly-plot");
      return charts.length === 1 ? charts[0]._fullLayout?.meta?.run ?? null : null;
    },
    watch: (marks) => watch(marks, performance.now()),
    opened: (marks) => watch(marks, 0),
    // Until another run of `text` is drawn.
    ofRun: (text) => {
      const before = everyRun();
      return { drawn: () => shows(text) && everyRun() !== null && everyRun() !== before };
    },
    // What `watch` waits for once the event has happened.
    on: (target, kind, isIt, marks) =>
      target.addEventListener(kind, function heard(event) {
        if (!isIt(event)) return;
        target.removeEventListener(kind, heard, true);
        window.bench.watch(marks());
      }, true),
  };
})();
