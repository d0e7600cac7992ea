"""A chart of the app stays where it is, follows its width, zooms, says at the hand what it shows, and is saved as a PNG."""

import re

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import transformer_viz as tv
from tests.browser.charts import (
    FOCUS,
    HOVER,
    TREE,
    area,
    at_rest,
    choose,
    drawn,
    point_at,
    wait_for_head,
    wait_for_link,
    wait_for_step,
    wait_until_drawn,
)
from tests.needs import slow
from transformer_viz.trace.search import STATE_WORDS

pytestmark = pytest.mark.browser

MOUNTS = """() => {
  [window.mounts, window.said] = [{}, 0];
  const { send } = WebSocket.prototype;
  WebSocket.prototype.send = function (message) {
    window.said += 1;
    return send.call(this, message);
  };
  const seen = new WeakSet();
  const look = (node) => {
    for (const chart of node.querySelectorAll?.('.charted > .chart') ?? []) {
      if (seen.has(chart)) continue;
      seen.add(chart);
      const key = chart.closest('[class*="st-key-"]').className.match(/st-key-(\\S+)/)[1];
      window.mounts[key] = (window.mounts[key] ?? 0) + 1;
    }
  };
  const found = new MutationObserver((changes) => changes.forEach(({ addedNodes }) => addedNodes.forEach(look)));
  found.observe(document, { childList: true, subtree: true });
}"""
"""Counts in the page, by their keys, charts that come into the document, and messages that have the session run its script."""
FOLLOWS = """() => [...document.querySelectorAll('.chart')].every((chart) =>
  Math.abs(chart._fullLayout?.width - chart.clientWidth) < 1 && chart.clientWidth < window.innerWidth)"""
"""Whether every chart is as wide as its place."""


def mounts_and_runs(page: Page) -> tuple[dict[str, int], int]:
    """How often each chart was mounted, by its key, and how often the script was asked to run, once the page is at rest."""
    return tuple(at_rest(page, "() => [window.mounts, window.said]"))


def open_app(page: Page, server: str) -> None:
    page.goto(f"{server}/?text=abc&step=2")
    wait_for_step(page, 1)
    at_rest(page)


@pytest.mark.slow
def test_a_chart_follows_the_width_of_the_page_and_keeps_its_step(page: Page, server: str) -> None:
    open_app(page, server)
    page.keyboard.press("Escape")
    page.locator("[data-part=output] button").nth(2).click()
    wait_for_step(page, 2)
    before = np.isnan(drawn(page)[:, 0]).tolist()
    for width in (900, 1300):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(FOLLOWS)
        assert np.isnan(drawn(page)[:, 0]).tolist() == before == [False, False, False, True]


@pytest.mark.slow
def test_a_page_is_made_once_and_each_of_its_charts_mounted_once(page: Page, server: str) -> None:
    open_app(page, server)
    page.evaluate(MOUNTS)
    for name, charts in {"Masks": ["lab-masks-chart"]}.items():
        at_rest(page)
        page.evaluate("[window.mounts, window.said] = [{}, 0]")
        page.get_by_role("link", name=name).first.click()
        wait_until_drawn(page, f".st-key-{charts[0]} .chart")
        assert mounts_and_runs(page) == (dict.fromkeys(charts, 1), 1)


@pytest.mark.slow
def test_a_search_runs_the_page_once_and_mounts_its_tree_once(page: Page, server: str) -> None:
    page.goto(f"{server}/?text=abc&checkpoint=reverse-small&all_controls=true")
    wait_until_drawn(page)
    at_rest(page)
    page.evaluate(MOUNTS)
    page.get_by_role("button", name="Decoding: greedy").click()
    page.get_by_role("radio", name="beam").click()
    wait_until_drawn(page, TREE)
    assert mounts_and_runs(page) == ({"search-tree-chart": 1}, 1)


@pytest.mark.slow
def test_charts_stay_when_the_browser_says_that_it_is_narrow(new_page: Page, server: str) -> None:
    """The page is made twice, at first as a wide one: then another figure is drawn into each chart, which stays."""
    page = new_page
    page.add_init_script(f"({MOUNTS})()")
    page.set_viewport_size({"width": 390, "height": 844})
    for address, charts in {
        "?decoding=beam&text=abc&checkpoint=reverse-small": ["search-tree-chart"],
    }.items():
        page.goto(f"{server}/{address}")
        wait_until_drawn(page, f".st-key-{charts[0]} .chart")
        assert mounts_and_runs(page) == (dict.fromkeys(charts, 1), 2)


# ---- what Plotly brings

LOSS = ".st-key-training-example .chart"
RANGES = "(chart) => ['xaxis', 'yaxis'].map((name) => chart.layout[name].range)"


def ranges(page: Page, chart: str) -> list[list[float]]:
    return page.locator(chart).evaluate(RANGES)


def drag(page: Page, chart: str) -> None:
    """From a quarter of the way across and down to three quarters."""
    box = area(page, chart)
    places = [(box["x"] + share * box["width"], box["y"] + share * box["height"]) for share in (0.25, 0.5, 0.75)]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place)
    page.mouse.up()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "chart"),
    [
        ("?text=hello&step=6", FOCUS),
        slow("?decoding=beam&text=thisqaipa&checkpoint=reverse-small", TREE),
        slow("train", LOSS),
    ],
)
def test_a_map_a_tree_and_a_loss_zoom_pan_and_come_back(page: Page, server: str, address: str, chart: str) -> None:
    page.goto(f"{server}/{address}")
    wait_until_drawn(page, chart)
    page.locator(chart).scroll_into_view_if_needed()
    at_rest(page)
    whole = np.array(ranges(page, chart))
    drag(page, chart)
    zoomed = np.array(at_rest(page, f"() => ({RANGES})(document.querySelector('{chart}'))"))
    np.testing.assert_allclose(np.abs(np.diff(zoomed)), np.abs(np.diff(whole)) / 2, rtol=0.05)
    page.locator(f"{chart} [data-title=Pan]").click()
    drag(page, chart)
    panned = np.array(at_rest(page, f"() => ({RANGES})(document.querySelector('{chart}'))"))
    # What lies there moves with the hand, rightwards and down.
    np.testing.assert_allclose(panned, zoomed + np.diff(zoomed) / 2 * [[-1], [1]], atol=0.03 * np.abs(np.diff(whole)).max())
    box = area(page, chart)
    page.mouse.dblclick(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.6)
    np.testing.assert_allclose(at_rest(page, f"() => ({RANGES})(document.querySelector('{chart}'))"), whole)


@pytest.mark.slow
def test_a_step_and_another_head_keep_a_zoom_and_another_text_does_not(page: Page, server: str) -> None:
    page.goto(f"{server}/?text=hello&step=3&layer=1&head=2&all_controls=true")
    wait_for_step(page, 2)
    at_rest(page)
    drag(page, FOCUS)
    zoomed = at_rest(page, f"() => ({RANGES})(document.querySelector('{FOCUS}'))")
    page.keyboard.press("ArrowRight")
    wait_for_step(page, 3)
    assert ranges(page, FOCUS) == zoomed
    choose(page, "Head", "head 3")
    wait_for_head(page, "cross", 0, 2)
    assert at_rest(page, f"() => ({RANGES})(document.querySelector('{FOCUS}'))") == zoomed
    page.get_by_label("Source text").fill("abc")
    page.get_by_label("Source text").press("Enter")
    expect(page.locator("[data-part=source] .token")).to_have_count(5)
    wait_until_drawn(page)
    assert at_rest(page, f"() => ({RANGES})(document.querySelector('{FOCUS}'))") == [[-0.5, 4.5], [3.5, -0.5]]


@pytest.mark.slow
def test_two_clicks_at_once_pin_nothing_and_keep_what_is_pinned(page: Page, server: str) -> None:
    page.goto(f"{server}/?text=hello&step=6&pin=2,4")
    wait_for_step(page, 5)
    at_rest(page)
    box, words = area(page), page.locator("[data-part=sentence]")
    expect(words).to_contain_text("Pinned: row 2")
    page.mouse.dblclick(box["x"] + box["width"] * 0.5 / 7, box["y"] + box["height"] * 0.5 / 6)
    at_rest(page)
    expect(words).to_contain_text("Pinned: row 2")
    wait_for_link(page, pin="2,4")


def test_the_mode_bar_saves_a_picture_and_leads_nowhere_else(page: Page, server: str) -> None:
    open_app(page, server)
    at_rest(page)
    point_at(page, FOCUS, 1, 1)
    bar = page.locator(f"{FOCUS} .modebar")
    names = bar.locator(".modebar-btn").evaluate_all("(all) => all.map((button) => button.dataset.title)")
    assert names == ["Download plot as a PNG", "Download plot as an SVG", "Zoom", "Pan", "Reset axes"]
    assert page.locator(".modebar-btn--logo, .modebar a[href]").count() == 0
    with page.expect_download() as saved:
        bar.locator(".modebar-btn").first.click()
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")
    name = saved.value.suggested_filename
    assert re.fullmatch(r"\w+-reverse-cross-attention-layer-\d-head-\d\.png", name)
    with page.expect_download() as saved:
        bar.locator(".modebar-btn").nth(1).click()
    words = saved.value.path().read_text(encoding="utf-8")
    assert words.startswith("<svg") and "cross-attention, layer" in words
    assert saved.value.suggested_filename == name.replace(".png", ".svg")
    first = page.locator(f"{FOCUS} .y2tick").first.bounding_box()
    box = bar.bounding_box()
    assert first and box and box["y"] + box["height"] <= first["y"], "the bar is above the first candidate"


@pytest.mark.slow
def test_on_touch_a_finger_scrolls_and_does_not_zoom(browser: Browser, server: str) -> None:
    phone = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, bypass_csp=True)
    page = phone.new_page()
    page.goto(f"{server}/?text=abc&step=2")
    wait_for_step(page, 1)
    assert page.locator(FOCUS).evaluate("(chart) => chart._fullLayout.dragmode") is False
    phone.close()


@pytest.mark.slow
def test_the_words_at_the_hand_are_the_cells(page: Page, server: str) -> None:
    page.goto(f"{server}/?text=hello&kind=decoder&layer=2&head=3&step=6")
    wait_for_step(page, 5)
    at_rest(page)
    weight = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "hello").decoder.weights[1, 2, 3, 1]
    point_at(page, FOCUS, 1, 3)
    expect(page.locator(HOVER)).to_have_text(f"query 4·l→ekey 2·oweight {weight:.4f}")
    point_at(page, FOCUS, 5, 1)
    expect(page.locator(HOVER)).to_have_text("query 2·o→l may not look at key 6·h:in the future")
    page.mouse.move(5, 5)
    expect(page.locator(HOVER)).to_have_count(0)


@pytest.mark.slow
def test_the_words_at_the_hand_are_the_nodes(page: Page, server: str) -> None:
    search = tv.decode(tv.load_checkpoint("reverse-small", device="cpu"), "hello", strategy="beam").search
    assert search is not None
    page.goto(f"{server}/?decoding=beam&text=hello&checkpoint=reverse-small")
    wait_until_drawn(page, TREE)
    page.locator(TREE).scroll_into_view_if_needed()
    at_rest(page)
    words = page.locator(f"{TREE} .hovertext")
    for node in (search.nodes[search.best[0]], next(node for node in search.nodes if node.state == "pruned")):
        point_at(page, TREE, node.step + 1, node.rank)
        expect(words).to_contain_text(f"log p {node.log_probability:.4f}, sum {node.total:.4f}, score {node.score:.4f}")
        expect(words).to_contain_text(f"rank {node.rank + 1} at step {node.step + 1}: {STATE_WORDS[node.state]}")
