"""The page's own rules of style find what they are about, which Streamlit may call something else in its next version."""

import re
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.browser.charts import wait_for_step
from transformer_viz.figures.theme import THEMES

pytestmark = pytest.mark.browser

WHAT_TO_DO = "look for the element's new name, and put it into views/components/style.py"


def style(page: Page, selector: str, name: str) -> list[str]:
    """A property of everything that is found, in pixels."""
    return page.evaluate(
        """([selector, name]) => [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility())
          .map((element) => getComputedStyle(element)[name])""",
        [selector, name],
    )


def test_the_rules_find_what_they_are_about(page: Page, server: str) -> None:
    page.goto(f"{server}/?text=abc&step=2")
    wait_for_step(page, 1)
    for element, selector, name, pixels in (
        ("the header", "header", "minHeight", 2.9 * 16),
        ("the page", "main > div", "maxWidth", 1680),
        ("what stands below each other", "div:has(> div > .st-key-bar)", "rowGap", 0.7 * 16),
    ):
        found = style(page, selector, name)
        assert [text for text in found if text.endswith("px") and abs(float(text[:-2]) - pixels) < 0.1], (
            f"{element}: {name} is {found}; {WHAT_TO_DO}"
        )


@pytest.mark.slow
def test_a_phone_shows_all_kinds_of_attention_and_the_box_for_files_is_large(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server}/?text=abc&step=2")
    wait_for_step(page, 1)
    boxes = [button.bounding_box() for button in page.locator(".kinds button").all()]
    assert len(boxes) == 3
    places = [(box["x"], box["x"] + box["width"], box["y"]) for box in boxes if box]
    assert len({y for _, _, y in places}) == 1, f"not in one row; {WHAT_TO_DO}"
    assert places[0][0] >= 0
    assert 300 < places[-1][1] <= 390, f"not as wide as the phone; {WHAT_TO_DO}"
    page.goto(f"{server}/?checkpoint=trace+file")
    page.locator(".st-key-open-drop").get_by_text("MB per file").wait_for()
    assert style(page, ".st-key-open-drop section", "minHeight") == ["180px"], WHAT_TO_DO


def paper(page: Page) -> np.ndarray:
    """The colour of a page's right edge, where no box reaches all of it: red, green and blue from 0 to 255."""
    return np.median(np.asarray(Image.open(BytesIO(page.screenshot())).convert("RGB"))[:, -5], axis=0)


@pytest.mark.slow
def test_a_dark_page_is_printed_on_white_paper(page: Page, server: str) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(f"{server}/?text=abc&step=2")
    wait_for_step(page, 1)
    assert paper(page).max() < 40
    page.emulate_media(color_scheme="dark", media="print")
    assert paper(page).min() > 240


@pytest.mark.slow
def test_light_and_dark_are_chosen_in_the_app_and_stay_so_on_every_page(page: Page, server: str) -> None:
    page.goto(f"{server}/?text=abc&step=2")
    wait_for_step(page, 1)
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="Dark").click()
    of_root = "getComputedStyle(document.documentElement).getPropertyValue('--paper').trim()"
    page.wait_for_function(f"{of_root} === '{THEMES['dark'].paper}'")
    wait_for_step(page, 1)
    assert paper(page).max() < 40
    page.goto(f"{server}/masks")
    expect(page.locator(".st-key-lab-header")).to_be_visible()
    assert paper(page).max() < 40


def test_an_unknown_page_is_one_sentence_of_ours(page: Page, server: str) -> None:
    page.goto(f"{server}/nosuch?text=abc&step=2")
    wait_for_step(page, 1)
    expect(page.get_by_text("page=nosuch")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page).not_to_have_url(re.compile("nosuch"))
