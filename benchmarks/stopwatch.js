// In every measured page from its beginning. `bench.watch(isDrawn)` takes the milliseconds from now, and `bench.opened(isDrawn)`
// those from the beginning of the navigation, until the condition holds and the browser has painted the frame after.
(() => {
  const watch = (isDrawn, started) => {
    window.took = null;
    const look = () => {
      requestAnimationFrame(isDrawn() ? () => setTimeout(() => { window.took = performance.now() - started; }) : look);
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
    // The bare page has a chart of Streamlit's, of which the one before is still there for a moment.
    plainRun: () => {
      const charts = document.querySelectorAll(".js-plotly-plot");
      return charts.length === 1 ? charts[0]._fullLayout?.meta?.run ?? null : null;
    },
    watch: (isDrawn) => watch(isDrawn, performance.now()),
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
