"""A term in a sentence says what it means: on hover, on focus and on a tap, and nothing else moves."""

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.charts import FOCUS, at_rest, wait_for_step, wait_until_drawn
from tests.browser.conftest import put_question_away
from transformer_viz.views.glossary import TERMS

pytestmark = pytest.mark.browser

SHOWN = """(term) => {
  // Of a term that was pressed, and that a lesson explains, the meaning stands above the way there.
  const way = term.querySelector(':scope > a'), isOpen = way && getComputedStyle(way).display !== 'none';
  const { content, display } = isOpen ? getComputedStyle(way, '::before') : getComputedStyle(term, '::after');
  const { position } = isOpen ? getComputedStyle(way) : getComputedStyle(term, '::after');
  return content === 'none' || display === 'none' ? null : [content.slice(1, -1), position];
}"""


def shown(term: Locator) -> str | None:
    """What is shown of it."""
    found = term.evaluate(SHOWN)
    assert found is None or found[1] == "absolute", "nothing may move"
    return None if found is None else found[0]


def term(page: Page, word: str) -> Locator:
    return page.locator("dfn:visible").filter(has_text=word).first


@pytest.mark.slow
def test_each_term_is_met_once_and_told_by_mouse_and_by_key(page: Page, server: str) -> None:
    page.goto(server)
    wait_until_drawn(page)
    at_rest(page)
    met = page.locator("dfn:visible").all_inner_texts()
    assert sorted(met) == sorted(["layer", "head", "looks", "token", "row", "column"])
    for name in ("layer", "head", "token"):
        one = term(page, name)
        assert shown(one) is None
        one.hover()
        assert shown(one) == f"{name.capitalize()}: {TERMS[name].sentence}."
        page.mouse.move(5, 700)
        assert shown(one) is None
        one.focus()
        assert shown(one) == f"{name.capitalize()}: {TERMS[name].sentence}."
    expect(term(page, "head")).to_have_accessible_description(f"Head: {TERMS['head'].sentence}.")
    # The keys of the player are its own whatever has the focus.
    page.keyboard.press("ArrowRight")
    wait_for_step(page, 1)
    expect(term(page, "layer")).to_be_visible()


@pytest.mark.slow
def test_a_term_leads_to_the_lesson_that_explains_it_and_back(page: Page, server: str) -> None:
    page.goto(f"{server}/?text=hello&step=2")
    wait_for_step(page, 1)
    one = term(page, "looks")
    said = page.locator("[data-part=slider]").get_attribute("aria-valuetext")
    assert said and "Lesson" not in said
    way = one.get_by_role("link", include_hidden=True)
    one.hover()
    expect(way).to_be_hidden()
    one.click()
    expect(way).to_be_visible()
    # What it means stands above the way.
    content = "(way) => ['::before', '::after'].map((name) => getComputedStyle(way, name).content)"
    means, leads = way.evaluate(content)
    assert "Lesson" in leads and "Lesson" not in means and len(means) > 20
    page.mouse.move(5, 700)
    expect(way).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-lesson-card")).to_contain_text("Reading a map · card 3 of 9")
    at_rest(page)
    page.go_back()
    expect(page.locator(".st-key-lesson-card")).to_have_count(0)
    expect(page.get_by_role("textbox", name="Source text")).to_have_value("hello")
    wait_for_step(page, 1)


@pytest.mark.slow
def test_a_tap_tells_on_a_phone_and_nothing_leaves_the_window(server: str, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, reduced_motion="reduce")
    page = context.new_page()
    put_question_away(page)
    page.goto(server)
    page.wait_for_selector(f"{FOCUS} .main-svg")
    at_rest(page)
    for word in ("layer", "head", "looks"):
        term(page, word).tap()
        assert shown(term(page, word))
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        # It may lie over the next one, and a tap beside it puts it away.
        page.touchscreen.tap(200, 3)
        assert shown(term(page, word)) is None
    context.close()


@pytest.mark.slow
def test_what_lies_below_a_meaning_can_be_pressed(page: Page, server: str) -> None:
    """The pointer rests where a term is; what it means opens over buttons, and a press on one of them is that button's."""
    page.goto(f"{server}/?text=hello&step=2")
    wait_for_step(page, 1)
    one = term(page, "looks")
    one.hover()
    assert shown(one)
    below = """(term) => {
      const box = term.getBoundingClientRect(), at = document.elementFromPoint(box.left + 5, box.bottom + 12);
      return term.contains(at) || term.getRootNode().elementFromPoint?.(box.left + 5, box.bottom + 12) === term;
    }"""
    assert not one.evaluate(below)
