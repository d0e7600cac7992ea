"""A map on a canvas has, dot by dot, the colours of its figure's numbers, each in its place; and its hover says them."""

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from tests.browser.charts import FOCUS, area, at_rest, wait_for_step
from transformer_viz.figures.theme import LIGHT
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace

pytestmark = pytest.mark.browser

DOTS = """([selector, places]) => {
  const canvas = document.querySelector(`${selector} canvas`), { left, top } = canvas.getBoundingClientRect();
  const copy = document.createElement('canvas');
  Object.assign(copy, { width: canvas.width, height: canvas.height });
  const context = copy.getContext('2d');
  context.drawImage(canvas, 0, 0);
  return places.map(([x, y]) => [...context.getImageData(Math.round(x - left), Math.round(y - top), 1, 1).data.slice(0, 3)]);
}"""


@pytest.fixture(scope="module")
def trace() -> Trace:
    found = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "hello")
    assert isinstance(found, Trace)
    return found


def open_app(page: Page, server: str, query: str) -> None:
    page.goto(f"{server}/?text=hello&{query}")
    wait_for_step(page, 5)
    at_rest(page)


def shades(weights: np.ndarray) -> np.ndarray:
    """The theme's colours between its stops, (…, 3)."""
    stops = np.array([[int(part) for part in colour[4:-1].split(",")] for colour in LIGHT.scale])
    at = np.linspace(0, 1, len(stops))
    return np.stack([np.interp(weights, at, stops[:, channel]) for channel in range(3)], -1)


def rgb(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def dots(page: Page, chart: str, places: list[tuple[float, float]]) -> np.ndarray:
    return np.array(page.evaluate(DOTS, [chart, places]))


def weights_of(trace: Trace, kind: Kind) -> np.ndarray:
    found = trace.attentions(kind)
    assert found is not None
    return found


def middles(box: dict[str, float], rows: int, columns: int) -> list[tuple[float, float]]:
    """Beside the middle of each cell, where there may be a ring."""
    x, y, width, height = (box[name] for name in ("x", "y", "width", "height"))
    return [
        (x + width * (column + 0.3) / columns, y + height * (row + 0.3) / rows)
        for row in range(rows)
        for column in range(columns)
    ]


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_every_cell_has_the_colour_of_its_weight(page: Page, server: str, trace: Trace, kind: Kind) -> None:
    open_app(page, server, f"kind={kind}&layer=2&head=3&step=6")
    weights = weights_of(trace, kind)[1, 2]
    masked = np.broadcast_to(trace.masks[kind], weights.shape)
    found = dots(page, FOCUS, middles(area(page), *weights.shape)).reshape(*weights.shape, 3)
    np.testing.assert_allclose(found[~masked], shades(weights[~masked]), atol=3)
    assert masked.any() == (kind == "decoder")
    hatch, grey = rgb(LIGHT.hatch), rgb(LIGHT.masked)
    assert np.all(found[masked] >= np.array(hatch) - 3)
    assert np.all(found[masked] <= np.array(grey) + 3)


def test_every_cell_of_every_small_map_too(page: Page, server: str, trace: Trace) -> None:
    open_app(page, server, "kind=cross&layer=1&head=1&step=6")
    weights, chart = weights_of(trace, "decoder"), ".st-key-mosaic-decoder .chart"
    masked = np.broadcast_to(trace.masks["decoder"], weights.shape)
    edges = """([chart]) => {
      const { meta } = document.querySelector(chart).layout, [area] = document.querySelector(chart).__picture.areas();
      return [...Array(meta.layers * meta.heads).keys()].map((tile) => {
        const x = (tile % meta.heads) * meta.pitch_x - 0.5, y = Math.floor(tile / meta.heads) * meta.pitch_y - 0.5;
        return [area.right(x), area.down(y), area.right(x + 1) - area.right(x), area.down(y + 1) - area.down(y)];
      });
    }"""
    rows, columns = weights.shape[2:]
    for place, (x, y, width, height) in enumerate(page.evaluate(edges, [chart])):
        tile = divmod(place, weights.shape[1])
        box = {"x": x, "y": y, "width": width * columns, "height": height * rows}
        found = dots(page, chart, middles(box, rows, columns)).reshape(rows, columns, 3)
        wanted = np.where(masked[tile][..., None], rgb(LIGHT.masked), shades(weights[tile]))
        # The outermost dots are the tile's frame.
        np.testing.assert_allclose(found[1:-1, 1:-1], wanted[1:-1, 1:-1], atol=3)


def test_the_words_at_the_hand_are_the_cells(page: Page, server: str, trace: Trace) -> None:
    open_app(page, server, "kind=decoder&layer=2&head=3&step=6")
    box, weight = area(page), weights_of(trace, "decoder")[1, 2, 3, 1]
    tip = page.locator(f"{FOCUS} .tip")
    page.mouse.move(box["x"] + box["width"] * 1.5 / 6, box["y"] + box["height"] * 3.5 / 6)
    expect(tip).to_have_text(f"query 4·l→ekey 2·oweight {weight:.4f}")
    page.mouse.move(box["x"] + box["width"] * 5.5 / 6, box["y"] + box["height"] * 1.5 / 6)
    expect(tip).to_have_text("query 2·o→l may not look at key 6·h:in the future")
    page.mouse.move(5, 5)
    expect(tip).to_be_hidden()
