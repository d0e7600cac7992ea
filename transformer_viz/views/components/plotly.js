// Put before what draws with plotly.js. Resolves to it; `name` is the file that `plotly_js.py` serves beside the page.
function plotlyFrom(name) {
  window.__plotly ??= new Promise((found, failed) => {
    const script = document.createElement("script");
    script.src = name;
    script.onload = () => found(window.Plotly);
    script.onerror = () => {
      window.__plotly = undefined;
      failed(Error(`${name} did not come`));
    };
    document.head.append(script);
  });
  return window.__plotly;
}
