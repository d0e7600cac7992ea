"""No press is lost: bursts of presses of every control of Explore, at human speed."""

import random

import pytest
from playwright.sync_api import Page, expect

from benchmarks.bursts import PATH, Bursts

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
