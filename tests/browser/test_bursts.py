"""No press is lost: bursts of presses of every control of Explore, at human speed."""

import random

import pytest
from playwright.sync_api import Page, expect

from benchmarks.bursts import PATH, Bursts, click_chart

pytestmark = pytest.mark.browser

N = 5


@pytest.mark.parametrize("seed", range(1, 5))
def test_what_was_pressed_last_is_shown(page: Page, server: str, seed: int) -> None:
    """And so does the address, opened anew. `python -m benchmarks.bursts` has 400, and slow lines."""
    page.set_viewport_size({"width": 1440, "height": 1400})
    page.goto(server + PATH)
    page.locator(".st-key-picture .viewer").wait_for()
    bursts = Bursts(page, random.Random(seed))
    bursts.begin()
    for number in range(N):
        assert not bursts.burst(), f"burst {number}"
    assert not bursts.reload()


def test_a_page_that_arrives_takes_no_link_from_under_the_hand(page: Page, server: str) -> None:
    page.goto(server + PATH)
    page.locator(".st-key-picture .viewer").wait_for()
    links, heading = page.locator(".st-key-pages").get_by_role("link"), page.locator("h1")
    explore = links.filter(has_text="Explore").bounding_box()
    assert explore is not None
    links.filter(has_text="Masks").click()
    page.mouse.move(explore["x"] + explore["width"] / 2, explore["y"] + explore["height"] / 2)
    page.mouse.down()
    expect(heading).to_have_text("Masks")
    page.wait_for_url("**/masks*")
    page.mouse.up()
    expect(heading).to_have_text("Explore")


SLOW_TO_SAY_SO = """() => {
  const react = Plotly.react;
  Plotly.react = (...given) => {
    const drawing = react(...given);
    return new Promise((done) => { window.say = () => done(drawing); });
  };
}"""


def test_a_cell_can_be_pressed_as_soon_as_it_is_to_be_seen(page: Page, server: str) -> None:
    """Also where Plotly, which has drawn it, has not yet said that it is done."""
    page.goto(server + PATH)
    page.locator(".st-key-picture .viewer [data-part=focus] .nsewdrag").first.wait_for()
    page.evaluate(SLOW_TO_SAY_SO)
    page.get_by_label("Source text").fill("abcdef")
    page.get_by_label("Source text").press("Enter")
    expect(page.locator(".viewer [data-part=source] .token")).to_have_count(8)
    page.locator(".viewer [data-box=kind] [value=decoder]").click()
    focus = page.locator(".viewer [data-part=focus]")
    expect(focus.locator(".ytick").nth(6)).to_be_attached()
    click_chart(page, focus, lambda _: (0, 0))
    expect(page.locator(".viewer .said-of-pin")).to_be_visible()
