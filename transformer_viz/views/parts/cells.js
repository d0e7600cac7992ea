// Tells Python which cell of a heatmap was clicked, or which row or column label. Streamlit reports no click on a heatmap.

export default function ({ data, setTriggerValue }) {
  const attach = () => {
    const chart = document.querySelector(`.st-key-${data.chart} .js-plotly-plot`);
    if (!chart?._fullLayout) return;
    chart.style.cursor = "pointer";
    chart.__reportCell = (cell) => setTriggerValue("cell", cell);
    if (chart.__hearsCells) return;
    chart.__hearsCells = true;
    chart.addEventListener("click", (event) => {
      const cell = cellAt(chart, event);
      if (cell) chart.__reportCell(cell);
    });
  };
  return keepAttached(attach);
}

// The query and key under the pointer; a label alone names a row (key null) or a column (query null).
function cellAt(chart, event) {
  for (const area of chart.querySelectorAll(".nsewdrag[data-subplot]")) {
    const plot = chart._fullLayout._plots[area.dataset.subplot];
    const box = area.getBoundingClientRect();
    if (!plot || !box.width) continue;
    const right = event.clientX - box.left, down = event.clientY - box.top;
    const inColumns = right >= 0 && right < box.width, inRows = down >= 0 && down < box.height;
    const key = Math.round(plot.xaxis.p2d(right)), query = Math.round(plot.yaxis.p2d(down));
    if (inColumns && inRows) return { query, key };
    const margin = 90;
    if (inRows && right < 0 && right > -margin) return { query, key: null };
    if (inColumns && down >= box.height && down < box.height + margin) return { query: null, key };
  }
  return null;
}
