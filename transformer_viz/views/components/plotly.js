// Put before what draws with plotly.js. Resolves to it; `name` is the file that `plotly_js.py` found among Streamlit's own.
function plotlyFrom(name) {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  if (!name) return new Promise((found) => requestAnimationFrame(() => found(plotlyFrom(null))));
  const entry = document.querySelector('script[type=module][src*="/static/js/"]');
  return import(new URL(name, entry.src)).then(() => window.Plotly);
}
