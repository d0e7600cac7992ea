// The bridge from the charts to Python: which tile of a mosaic was clicked, and whether the page is narrow.
// Streamlit reports no click on a heatmap by itself.

const NARROW_PX = 640;

export default function ({ parentElement, data, setStateValue, setTriggerValue }) {
  const isNarrow = window.innerWidth < NARROW_PX;
  if (data.narrow !== isNarrow) setStateValue("narrow", isNarrow);
  const attach = () => {
    for (const kind of data.kinds) {
      const chart = document.querySelector(`.st-key-mosaic-${kind} .js-plotly-plot`);
      if (!chart?._fullLayout) continue;
      chart.style.cursor = "pointer";
      chart.__report = (tile) => setTriggerValue("tile", tile);
      if (chart.__hears) continue;
      chart.__hears = true;
      chart.addEventListener("click", (event) => clicked(chart, event));
    }
  };
  return keepAttached(attach);
}

function clicked(chart, event) {
  const grid = chart.layout?.meta?.[0];
  const plot = chart._fullLayout?._plots?.xy;
  const area = chart.querySelector(".nsewdrag")?.getBoundingClientRect();
  if (!grid || !plot || !area) return;
  const head = Math.floor((plot.xaxis.p2d(event.clientX - area.left) + 0.5) / grid.pitch_x);
  // Not every run has all layers, so a row of tiles is not the layer's number.
  const row = Math.max(0, Math.floor((plot.yaxis.p2d(event.clientY - area.top) + 0.5) / grid.pitch_y));
  if (head < 0 || head >= grid.heads || row >= grid.layers) return;
  // The player may be further than the last step that it reported: the step travels with the click.
  const step = document.querySelector(".st-key-focus .js-plotly-plot")?.__step;
  chart.__report({ kind: grid.kind, layer: grid.numbers[row], head, step });
}
