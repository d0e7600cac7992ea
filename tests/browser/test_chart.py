"""A chart of the app stays where it is: another figure is drawn into it, the same one is not, and it follows its width."""

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.charts import at_rest, drawn, texts, wait_for_head, wait_for_step, wait_until_drawn

pytestmark = pytest.mark.browser

COUNT = """() => {
  window.drawings = 0;
  document.addEventListener('chart-drawn', () => { window.drawings += 1; });
}"""

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
  chart.querySelector('canvas')?.width === Math.floor(chart.clientWidth) && chart.clientWidth < window.innerWidth)"""
"""Whether every chart is as wide as its place."""
MOSAICS = ["mosaic-encoder", "mosaic-decoder", "mosaic-cross"]
SEARCH = ["search-tree-chart", "focus", *MOSAICS]


def mounts_and_runs(page: Page) -> tuple[dict[str, int], int]:
    """How often each chart was mounted, by its key, and how often the script was asked to run, once the page is at rest."""
    return tuple(at_rest(page, "() => [window.mounts, window.said]"))


def open_app(page: Page, server: str) -> None:
    page.goto(f"{server}/?text=abc&step=2")
    wait_for_step(page, 1)
    page.wait_for_function("[...document.querySelectorAll('.chart')].filter((chart) => chart.__drawn).length === 4")


def test_another_figure_is_drawn_into_the_same_chart_and_one_that_stands_there_is_not(page: Page, server: str) -> None:
    open_app(page, server)
    page.evaluate(COUNT)
    page.get_by_text("Show the code").first.click()
    expect(page.locator("[data-testid=stCode]")).to_contain_text("abc")
    assert at_rest(page, "() => window.drawings") == 0
    before = page.evaluate_handle("[...document.querySelectorAll('.chart')]")
    page.get_by_role("radio", name="decoder self-attention").click()
    wait_for_head(page, "decoder", 0, 0)
    assert page.evaluate("(charts) => charts.every((chart) => chart.isConnected)", before)
    ticks = texts(page, "ytick")
    assert len(ticks) == len(drawn(page)) == 4
    assert ticks[1].startswith("2·")
    # The two mosaics of which one was, and one is, the focus; the third is as it was.
    assert at_rest(page, "() => window.drawings") == 3


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


def test_a_page_is_made_once_and_each_of_its_charts_mounted_once(page: Page, server: str) -> None:
    open_app(page, server)
    page.evaluate(MOUNTS)
    for name, charts in {"Compare": ["compare-chart", *MOSAICS], "Search": SEARCH, "Masks": ["lab-masks-chart"]}.items():
        at_rest(page)
        page.evaluate("[window.mounts, window.said] = [{}, 0]")
        page.get_by_role("link", name=name).first.click()
        wait_until_drawn(page, f".st-key-{charts[0]} .chart")
        assert mounts_and_runs(page) == (dict.fromkeys(charts, 1), 1)


def test_charts_stay_when_the_browser_says_that_it_is_narrow(page: Page, server: str) -> None:
    """The page is made twice, at first as a wide one: another figure is drawn into each chart."""
    page.set_viewport_size({"width": 390, "height": 844})
    for address, charts in {"search?text=abc&checkpoint=reverse-small": SEARCH, "compare": ["compare-chart", *MOSAICS]}.items():
        page.goto(f"{server}/{address}", wait_until="commit")
        page.evaluate(MOUNTS)
        wait_until_drawn(page, f".st-key-{charts[0]} .chart")
        assert mounts_and_runs(page) == (dict.fromkeys(charts, 1), 2)
