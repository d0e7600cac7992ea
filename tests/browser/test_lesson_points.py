"""Every name that a lesson may point at stands on each of its pages, where `learn/points.py` says."""

import pytest
from playwright.sync_api import Page, expect

from transformer_viz.learn.points import POINTS

pytestmark = pytest.mark.browser
OPENINGS = {
    "explore": "/?checkpoint=reverse-small&text=thisqaipa&decoding=beam&step=6",
    "masks": "/masks?sources=hello%0Aab",
    "compare": "/compare?text=hello&b_text=hallo",
    "train": "/train?learned=true&checkpoint=reverse-small&text=reversethis&moment=227",
    "survey": "/survey",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPENINGS)
def test_what_a_lesson_points_at_is_there(page: Page, server: str, name: str) -> None:
    page.goto(f"{server}{OPENINGS[name]}")
    for point in POINTS.values():
        if name in point.pages:
            expect(page.locator(point.selector).first).to_be_visible()
