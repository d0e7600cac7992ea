"""A chart of the app stays where it is: another figure is drawn into it, the same one is not, and it follows its width."""

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.charts import at_rest, drawn, texts, wait_for_head, wait_for_step

pytestmark = pytest.mark.browser

COUNT = """() => {
  window.drawings = 0;
  document.addEventListener('chart-drawn', () => { window.drawings += 1; });
}"""


def open_app(page: Page, server: str) -> None:
    page.goto(f"{server}/?text=abc&step=2")
    wait_for_step(page, 1)
    page.wait_for_function("[...document.querySelectorAll('.chart')].filter((chart) => chart.__drawn).length === 4")


def test_another_figure_is_drawn_into_the_same_chart(page: Page, server: str) -> None:
    open_app(page, server)
    page.evaluate(COUNT)
    before = page.evaluate_handle("[...document.querySelectorAll('.chart')]")
    page.get_by_role("radio", name="decoder self-attention").click()
    wait_for_head(page, "decoder", 0, 0)
    assert page.evaluate("(charts) => charts.every((chart) => chart.isConnected)", before)
    ticks = texts(page, "ytick")
    assert len(ticks) == len(drawn(page)) == 4
    assert ticks[1].startswith("2·")
    # The two mosaics of which one was, and one is, the focus; the third is as it was.
    assert at_rest(page, "() => window.drawings") == 3


def test_a_figure_that_stands_there_already_is_not_drawn_again(page: Page, server: str) -> None:
    open_app(page, server)
    page.evaluate(COUNT)
    page.get_by_text("Show the code").first.click()
    expect(page.locator("[data-testid=stCode]")).to_contain_text("abc")
    assert at_rest(page, "() => window.drawings") == 0


def test_a_chart_follows_the_width_of_the_page_and_keeps_its_step(page: Page, server: str) -> None:
    open_app(page, server)
    page.keyboard.press("Escape")
    page.locator("[data-part=output] button").nth(2).click()
    wait_for_step(page, 2)
    before = np.isnan(drawn(page)[:, 0]).tolist()
    for width in (900, 1300):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(
            """() => [...document.querySelectorAll('.chart')].every((chart) =>
              chart.querySelector('canvas').width === Math.floor(chart.clientWidth)
              && chart.clientWidth < window.innerWidth)"""
        )
        assert np.isnan(drawn(page)[:, 0]).tolist() == before == [False, False, False, True]
