"""With the answer hidden a class guesses, step by step, in a real browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.charts import FOCUS, area, at_rest
from tests.browser.test_explore import expect_output

pytestmark = pytest.mark.browser

TALLY = re.compile("guess(es)? right")


def open_app_hidden(page: Page, server: str) -> None:
    page.goto(f"{server}/?text=hello&hide_answer=true")
    page.locator("[data-part=output] button").first.wait_for()
    at_rest(page)


def places(page: Page) -> list[float]:
    """Where each control and the large map stand in the picture, wherever the page is scrolled to."""
    parts = page.locator(f".viewer .controls button, .stForm :is(input, button), {FOCUS} .nsewdrag").filter(visible=True)
    return parts.evaluate_all(
        """(parts) => {
          const from = document.querySelector(".viewer").getBoundingClientRect();
          return parts.map((part) => part.getBoundingClientRect()).flatMap(({ x, y }) => [x - from.x, y - from.y]);
        }"""
    )


def click_cell(page: Page, query: int, key: int) -> None:
    """Of the focus map."""
    box = area(page)
    page.mouse.click(box["x"] + box["width"] * (key + 0.5) / 7, box["y"] + box["height"] * (query + 0.5) / 6)


def guess_by_letter(page: Page, letter: str) -> None:
    box = page.get_by_label(re.compile("comes next"))
    box.fill(letter)
    box.press("Enter")


@pytest.mark.slow
def test_a_class_guesses_by_keyboard_and_by_mouse(page: Page, server: str) -> None:
    """Letters, a cell of the map, a source token; right and wrong; revealing without a guess, and covering again."""
    open_app_hidden(page, server)
    expect_output(page, "??????")
    before = places(page)
    guess_by_letter(page, "o")
    expect(page.locator("[data-part=answer]")).to_have_text(
        re.compile("^You guessed o; the model wrote o, and layer 1 head 1 looks")
    )
    expect(page.get_by_text(TALLY)).to_have_text("1 of 1 guess right")
    # A cell of the second row: its fourth column is wrong.
    click_cell(page, 1, 3)
    expect(page.locator("[data-part=answer]")).to_have_text(
        re.compile(r"^You guessed l \(token 4\); the model wrote l, .* at l \(token 5\)")
    )
    expect(page.get_by_text(TALLY)).to_have_text("1 of 2 guesses right")
    expect_output(page, "ol????")
    # A source token by keyboard, and the hand stays there.
    source = page.locator("[data-part=source] .token").nth(3)
    source.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text(TALLY)).to_have_text("2 of 3 guesses right")
    assert page.evaluate("document.activeElement.textContent") == "l"
    page.locator("[data-part=output] button").nth(3).focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-part=output] button").nth(3)).to_have_text("e")
    expect(page.get_by_text(TALLY)).to_have_text("2 of 3 guesses right")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-part=output] button").nth(3)).to_have_text("?")
    at_rest(page)
    assert re.search(r"hide_answer=true&step=4\b|step=4&hide_answer=true", page.url)
    marks = page.locator("[data-part=output] button").evaluate_all("cells => cells.map((cell) => cell.className)")
    assert ["hit" in name for name in marks] == [True, False, True, False, False, False]
    assert ["miss" in name for name in marks] == [False, True, False, False, False, False]
    # To the end: no control and no map has moved on the way.
    for step in (3, 4, 5):
        page.keyboard.press("ArrowRight")
        expect(page.locator("[data-part=output] button").nth(step)).not_to_have_text("?")
    expect(page.get_by_role("button", name="Guess", exact=True)).to_be_disabled()
    assert places(page) == pytest.approx(before, abs=2)
