"""Every number of every large map: of each kind, layer, head and measure, in the app, on an exported and on a live page, beside
the arrays of `tv.decode` and `tv.attribute`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

import transformer_viz as tv
from tests.browser.charts import wait_for_weights
from transformer_viz.addresses import map_address
from transformer_viz.live.page import live_html
from transformer_viz.terms import COMBINED, Head, Kind
from transformer_viz.trace.trace import Trace

pytestmark = pytest.mark.browser

TEXT, MAP = "hello", ".viewer [data-part=focus]"
LAST, CHOOSE = (
    "document.querySelector('.viewer [data-part=last]').click()",
    """([kind, layer, head]) => {
  for (const [name, value] of Object.entries({ kind, layer: String(layer), head: String(head) })) {
    const box = document.querySelector(`.viewer [data-box=${name}]`);
    if (box.tagName !== 'SELECT') box.querySelector(`[value=${value}]`).click();
    else {
      box.value = value;
      box.dispatchEvent(new Event('change', { bubbles: true }));
    }
  }
}""",
)
MEASURE = "(value) => document.querySelector(`.viewer .measures [value=${value}]`).click()"


@pytest.fixture(scope="module")
def model() -> tv.Checkpoint:
    return tv.load_checkpoint("reverse", device="cpu")


@pytest.fixture(scope="module")
def trace(model: tv.Checkpoint) -> Trace:
    return tv.decode(model, TEXT)


def compare_all(
    page: Page,
    trace: Trace,
    values: Callable[[Kind, int, Head], np.ndarray],
    heads: list[Head],
    kinds: tuple[Kind, ...] = ("encoder", "decoder", "cross"),
) -> None:
    """Each map of the page, cell by cell; what is masked is blank."""
    page.wait_for_function("(map) => document.querySelector(map)?.data", arg=MAP)
    page.evaluate(LAST)
    for kind in kinds:
        for layer in trace.attentions[kind].layers:
            for head in heads:
                page.evaluate(CHOOSE, [kind, layer, head])
                masked = trace.attentions[kind].head_mask(layer, head)
                wait_for_weights(page, np.where(masked, np.nan, values(kind, layer, head)), 1e-5, MAP)


def heads_of(trace: Trace) -> list[Head]:
    return [*range(trace.cross.n_heads), *COMBINED]


def test_in_the_app(page: Page, server: str, model: tv.Checkpoint, trace: Trace) -> None:
    page.goto(f"{server}/?text={TEXT}&all_controls=true")
    compare_all(page, trace, lambda kind, layer, head: trace.attentions[kind].head(layer, head), heads_of(trace))
    page.wait_for_function("document.querySelector('.viewer .measures [value=value]')")
    page.evaluate(MEASURE, "value")
    kinds: tuple[Kind, ...] = ("decoder", "cross")
    norms: dict[str, Any] = {kind: tv.attribute(model, trace, "value_weighted", kind=kind).values for kind in kinds}
    compare_all(page, trace, lambda kind, layer, head: norms[kind][layer, head], [1, 3], kinds)


def test_on_an_exported_page(open_page: Callable[..., Page], trace: Trace) -> None:
    page = open_page(tv.export.html(trace))
    compare_all(page, trace, lambda kind, layer, head: trace.attentions[kind].head(layer, head), heads_of(trace))


def test_on_a_live_page(open_page: Callable[..., Page], model: tv.Checkpoint, trace: Trace) -> None:
    page = open_page(live_html(model, TEXT))
    compare_all(page, trace, lambda kind, layer, head: trace.attentions[kind].head(layer, head), heads_of(trace))


def test_the_difference_of_two_runs(page: Page, server: str, model: tv.Checkpoint, trace: Trace) -> None:
    other = tv.decode(model, "hallo")
    comparison = tv.compare(trace, other)
    page.goto(f"{server}/compare?text={TEXT}&b_text=hallo&checkpoint=reverse&b_checkpoint=reverse&all_controls=true")

    def difference(kind: Kind, layer: int, head: Head) -> np.ndarray:
        laid = comparison.one_head(map_address(kind, layer, head))
        return np.where(laid.masked == 3, np.nan, laid.difference)

    chart = ".pair [data-part=difference]"
    page.wait_for_function("(map) => document.querySelector(map)?.data", arg=chart)
    for kind in comparison.kinds:
        for layer in comparison.layers(kind):
            for head in (0, 2, "mean"):
                page.evaluate(CHOOSE, [kind, layer, head])
                wait_for_weights(page, difference(kind, layer, head), 1e-5, chart)
