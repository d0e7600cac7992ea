// Tells Python which point of a scatter was clicked: its customdata. Streamlit's own selection would dim the others.

export default function ({ data, setTriggerValue }) {
  const attach = () => {
    const chart = document.querySelector(`.st-key-${data.chart} .js-plotly-plot`);
    if (!chart?.on) return;
    chart.__reportPoint = (point) => setTriggerValue("point", point);
    if (chart.__hearsPoints) return;
    chart.__hearsPoints = true;
    chart.on("plotly_click", (event) => {
      const number = event.points?.[0]?.customdata;
      if (Number.isInteger(number)) chart.__reportPoint(number);
    });
  };
  return keepAttached(attach);
}
