"""“The model” in a real browser: a press moves the focus, all of it by keyboard, and what is folded stays folded."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.accessible import faults
from tests.browser.charts import at_rest, wait_until_drawn
from transformer_viz.checkpoints import load_checkpoint
from transformer_viz.model.architecture import architecture_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]

BLOCK = ".drawing .block"


def block(page: Page, place: str) -> Locator:
    return page.locator(f'{BLOCK}[data-at="{place}"]')


def test_a_press_moves_the_focus_and_so_do_keys(page: Page, server: str) -> None:
    checkpoint = load_checkpoint("reverse", "cpu")
    page.goto(f"{server}/?text=abc&step=2")
    wait_until_drawn(page)
    page.get_by_text("The model", exact=True).click()
    expect(block(page, "decoder.0.cross_attention")).to_have_attribute("aria-pressed", "true")
    drawn = page.locator(BLOCK).evaluate_all("blocks => blocks.map((block) => block.getAttribute('data-at'))")
    assert drawn == [each.place for each in architecture_of(checkpoint.network.config)]
    # Pointed at, a block says what it does.
    block(page, "encoder.1.feed_forward").hover()
    said = page.locator(".drawing .says:visible")
    expect(said).to_contain_text("layer 2Each vector by itself goes from d_model 128 to d_ff")
    block(page, "decoder.1.attention").click()
    expect(page).to_have_url(re.compile(r"kind=decoder.*layer=layer\+2"))
    expect(block(page, "decoder.1.attention")).to_have_attribute("aria-pressed", "true")
    expect(page.locator('.drawing [aria-pressed="true"]')).to_have_count(1)
    at_rest(page)
    assert "step=2" in page.url
    # Tab goes up through the blocks; one that is no attention is passed over by a press.
    expect(block(page, "decoder.1.attention")).to_be_focused()
    for key, place in (("Tab", "decoder.1.cross_attention.before"), ("Enter", "decoder.1.cross_attention.before")):
        page.keyboard.press(key)
        expect(block(page, place)).to_be_focused()
    page.mouse.move(5, 5)
    expect(said).to_contain_text("layer 2")
    block(page, "encoder.1.attention").focus()
    page.keyboard.press(" ")
    expect(page).to_have_url(re.compile(r"kind=encoder.*layer=layer\+2"))
    expect(block(page, "encoder.1.attention")).to_be_focused()
    # What is out of sight has no pixels to look at, nor has what is below words.
    block(page, "encoder.1.attention").blur()
    page.set_viewport_size({"width": 1440, "height": 3600})
    at_rest(page)
    assert not [*faults(page)]
    # As it was left: open on another page and back, and closed after a reload of a link that says so.
    page.get_by_text("The model", exact=True).click()
    expect(page.locator(".drawing")).to_have_count(0)
    at_rest(page)
    page.reload()
    wait_until_drawn(page)
    expect(page.locator(".drawing")).to_have_count(0)
