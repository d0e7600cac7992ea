"""A model of more layers than one picture holds, in a real browser: pages, order, overview, colours, and the link elsewhere."""

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from tests.browser.charts import (
    PICTURE,
    at_rest,
    choose,
    click_tile,
    link_of,
    small,
    wait_for_head,
    wait_for_weights,
    wait_until_drawn,
)
from tests.needs import needs
from tests.tiny_models import DEEP
from transformer_viz.analysis.head_order import ordered

pytestmark = [pytest.mark.browser, pytest.mark.slow, needs("transformers"), pytest.mark.xdist_group("browser 1")]

TILES, OVERVIEW = small("decoder"), f"{PICTURE} [data-part=overview] .chart"


def tiles(page: Page) -> list[list[int]]:
    """Layer and head of the small maps, from 0."""
    at_rest(page)
    wait_until_drawn(page, TILES)
    return page.evaluate(f"document.querySelector('{TILES}').layout.meta.tiles")


def test_all_heads_are_a_page_an_order_or_a_click_away(page: Page, another: Page, url: str, models: Path) -> None:
    trace = tv.decode(tv.load_model(str(models / DEEP), "cpu"), "The house")
    page.goto(f"{url}/?checkpoint={DEEP}&text=The+house&step={trace.n_steps}&all_controls=true")
    wait_until_drawn(page)
    assert tiles(page) == [[layer, head] for layer in range(6) for head in range(3)]
    choose(page, "Small maps of", "layers 7 to 8")
    expect(page).to_have_url(re.compile("heads_page=layers"))
    assert tiles(page) == [[layer, head] for layer in (6, 7) for head in range(3)]
    click_tile(page, OVERVIEW, 3, 2)
    wait_for_head(page, "decoder", 3, 2)
    assert [3, 2] in tiles(page), "the page of the focus"
    choose(page, "Heads in the order of", "entropy, of the largest possible")
    places = [list(place) for place in ordered(trace, "decoder", "entropy_share")]
    expect(page).to_have_url(re.compile("head_order=entropy"))
    assert tiles(page) in (places[:18], places[18:])
    at_rest(page)
    shown = tiles(page)
    another.goto(link_of(page))
    wait_for_head(another, "decoder", 3, 2)
    assert tiles(another) == shown
    for each in (page, another):
        wait_for_weights(each, np.where(trace.decoder.mask, np.nan, trace.decoder.weights[3, 2]), 1e-6)
