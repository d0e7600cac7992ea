"""A chart of the app stays where it is: another figure is drawn into it, the same one is not, and it follows its width."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.charts import FOCUS, at_rest, wait_for_head, wait_for_step

pytestmark = pytest.mark.browser

COUNT = """() => {
  window.drawings = 0;
  document.addEventListener('chart-drawn', () => { window.drawings += 1; });
}"""


def open_app(page: Page, server: str) -> None:
    page.goto(f"{server}/?text=abc&step=2")
    wait_for_step(page, 1)
    page.wait_for_function("[...document.querySelectorAll('.js-plotly-plot')].filter((chart) => chart.__drawn).length === 4")


def test_another_figure_is_drawn_into_the_same_chart(page: Page, server: str) -> None:
    open_app(page, server)
    page.evaluate(COUNT)
    before = page.evaluate_handle("[...document.querySelectorAll('.js-plotly-plot')]")
    page.get_by_role("radio", name="decoder self-attention").click()
    wait_for_head(page, "decoder", 0, 0)
    assert page.evaluate("(charts) => charts.every((chart) => chart.isConnected)", before)
    rows = page.evaluate(f"document.querySelector('{FOCUS}')._fullData[0].z.length")
    ticks = page.locator(f"{FOCUS} .ytick").all_text_contents()
    assert len(ticks) == rows == 4
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
    blank = f"[...document.querySelector('{FOCUS}')._fullData[0].z].map((row) => isNaN(row[0]))"
    before = page.evaluate(blank)
    for width in (900, 1300):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(
            """(charts) => [...document.querySelectorAll(charts)].every((chart) =>
              chart._fullLayout.width === Math.floor(chart.clientWidth) && chart.clientWidth < window.innerWidth)""",
            arg=".js-plotly-plot",
        )
        assert page.evaluate(blank) == before == [False, False, False, True]
