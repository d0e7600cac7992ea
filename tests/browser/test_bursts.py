"""No press is lost: bursts of presses of every control of Explore, at human speed."""

import random

import pytest
from playwright.sync_api import Page

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
