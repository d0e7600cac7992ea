"""A map on a canvas has, dot by dot, the colours of its figure's numbers, each in its place; and its hover says them."""

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from tests.browser.charts import FOCUS, ROWS, TREE, area, at_rest, point_at, wait_for_step, wait_until_drawn
from transformer_viz.figures.mask_reasons import colour
from transformer_viz.figures.theme import LIGHT
from transformer_viz.terms import Kind
from transformer_viz.trace.search import STATE_WORDS
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
MASKS = ".st-key-lab-masks-chart .chart"
MAPS = f"""(selector) => document.querySelector(selector).data.filter(({{ type }}) => type === 'heatmap')
  .map((trace) => ({ROWS})({{ data: [trace] }}))"""
"""The numbers of each map of a canvas."""
BOXES = """(selector) => document.querySelector(selector).__picture.areas()
  .map(({ box: { x, y, width, height } }) => ({ x, y, width, height }))"""


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
    found = trace.attentions[kind].weights
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
    masked = np.broadcast_to(trace.attentions[kind].mask, weights.shape)
    found = dots(page, FOCUS, middles(area(page), *weights.shape)).reshape(*weights.shape, 3)
    np.testing.assert_allclose(found[~masked], shades(weights[~masked]), atol=3)
    assert masked.any() == (kind == "decoder")
    hatch, grey = rgb(LIGHT.hatch), rgb(LIGHT.masked)
    assert np.all(found[masked] >= np.array(hatch) - 3)
    assert np.all(found[masked] <= np.array(grey) + 3)


def test_every_cell_of_every_small_map_too(page: Page, server: str, trace: Trace) -> None:
    open_app(page, server, "kind=cross&layer=1&head=1&step=6")
    weights, chart = weights_of(trace, "decoder"), ".st-key-mosaic-decoder .chart"
    masked = np.broadcast_to(trace.decoder.mask, weights.shape)
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


def test_every_cell_of_every_mask_has_the_colour_of_its_reason(page: Page, server: str) -> None:
    page.goto(f"{server}/masks")
    wait_until_drawn(page, MASKS)
    page.locator(MASKS).scroll_into_view_if_needed()
    at_rest(page)
    reasons = page.evaluate(MAPS, MASKS)
    boxes = page.evaluate(BOXES, MASKS)
    # Three sentences of five masks; of the first sentence all are on the screen.
    assert len(reasons) == len(boxes) == 15
    for codes, box in list(zip(map(np.array, reasons), boxes, strict=True))[:5]:
        found = dots(page, MASKS, middles(box, *codes.shape)).reshape(*codes.shape, 3)
        np.testing.assert_allclose(found, [[rgb(colour(code, "light")) for code in row] for row in codes], atol=1)
    assert {code for codes in reasons[:5] for row in codes for code in row} == {0, 1, 2, 3}


def test_a_difference_has_the_colour_of_its_sign_and_size(page: Page, server: str) -> None:
    page.goto(f"{server}/compare")
    chart = ".st-key-compare-maps .chart"
    wait_until_drawn(page, chart)
    page.locator(chart).scroll_into_view_if_needed()
    at_rest(page)
    *_, difference = (np.array(rows) for rows in page.evaluate(MAPS, chart))
    assert difference.min() < -0.9
    assert difference.max() > 0.9
    box = page.evaluate(BOXES, chart)[2]
    found = dots(page, chart, middles(box, *difference.shape)).reshape(*difference.shape, 3)
    stops = np.array([rgb(stop) for stop in LIGHT.diverging])
    at = np.linspace(-1, 1, len(stops))
    wanted = np.stack([np.interp(difference, at, stops[:, channel]) for channel in range(3)], -1)
    # The frame around the largest lies on its cell's edge, and not where it is looked at.
    np.testing.assert_allclose(found, wanted, atol=3)


def test_the_words_at_the_hand_are_the_nodes(page: Page, server: str) -> None:
    found = tv.decode(tv.load_checkpoint("reverse-small", device="cpu"), "hello", strategy="beam").search
    assert found is not None
    page.goto(f"{server}/search?text=hello&checkpoint=reverse-small")
    wait_until_drawn(page, TREE)
    page.locator(TREE).scroll_into_view_if_needed()
    at_rest(page)
    tip = page.locator(f"{TREE} .tip")
    for node in (found.nodes[found.best[0]], next(node for node in found.nodes if node.state == "pruned")):
        point_at(page, TREE, node.step + 1, node.rank)
        expect(tip).to_contain_text(f"log p {node.log_probability:.4f}, sum {node.total:.4f}, score {node.score:.4f}")
        expect(tip).to_contain_text(f"rank {node.rank + 1} at step {node.step + 1}: {STATE_WORDS[node.state]}")
    # Between two steps and two ranks there is nothing to point at.
    point_at(page, TREE, 1.5, 1.5)
    expect(tip).to_be_hidden()


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
