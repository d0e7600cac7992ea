"""Drawing figures in Chromium without the app around them, and the plain way to draw many heads: a heatmap a head."""

import plotly.graph_objects as go
from playwright.sync_api import Browser, Page
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from benchmarks import browser
from transformer_viz.terms import KINDS
from transformer_viz.trace.trace import Trace

# Three beside each other on a page 1440 wide, as in the app.
_WIDTH = 460
_DRAW = """async (texts) => {
  document.body.replaceChildren(...texts.map(() => Object.assign(document.createElement('div'), { style: 'width: 460px' })));
  const places = [...document.body.children];
  const started = performance.now();
  await Promise.all(texts.map((text, i) => {
    const figure = JSON.parse(text);
    return Plotly.newPlot(places[i], figure.data, figure.layout);
  }));
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  const took = performance.now() - started;
  places.forEach((place) => Plotly.purge(place));
  return took;
}"""


def page(running: Browser) -> Page:
    """An empty page that has Plotly."""
    made = browser.new_page(running)
    made.set_content("<!doctype html><title>drawing</title><body>")
    made.add_script_tag(content=get_plotlyjs())
    return made


def milliseconds(page: Page, texts: list[str]) -> float:
    """From the figures' text to the frame after all are drawn."""
    return float(page.evaluate(_DRAW, texts))


def subplots(trace: Trace) -> list[str]:
    """Each kind as a grid of subplots, one heatmap a head, as JSON."""
    made = []
    for kind in KINDS:
        weights = trace.attentions(kind)
        assert weights is not None
        n_layers, n_heads = weights.shape[:2]
        figure = make_subplots(n_layers, n_heads, horizontal_spacing=0.01, vertical_spacing=0.01)
        for layer in range(n_layers):
            for head in range(n_heads):
                figure.add_trace(go.Heatmap(z=weights[layer, head], showscale=False), layer + 1, head + 1)
        figure.update_xaxes(visible=False).update_yaxes(visible=False, autorange="reversed")
        figure.update_layout(width=_WIDTH, height=28 + 4 * 98, margin={"t": 22, "b": 2, "l": 2, "r": 2})
        made.append(str(figure.to_json()))
    return made
