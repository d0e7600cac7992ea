"""Exported and live pages in Chinese: no English is left on them but what a run holds, codes and names."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from docs import lesson_pages
from tests.browser.accessible import faults
from tests.browser.drawn import DRAWN
from transformer_viz.language import speaking
from transformer_viz.live.page import live_html
from transformer_viz.sentences.run_sentences import plain, step_sentences

pytestmark = pytest.mark.browser

TEXT = "qqxy"
"""What is read: no word of any language."""
ALLOWED = {
    *("Transformer", "Viz", "English"),  # names
    *("reverse", "pre-norm", "greedy", "sample", "cpu"),  # a checkpoint, and codes that are typed as they are
    *("start", "end", "PNG", "SVG", "GIF", "Home", "End", "Esc", "Ctrl", "Top-k", "Top-p", "softmax"),
    *("cross", "zero"),  # of a change as it is typed
}
"""Runs of Latin letters that no language translates."""
SAID = """() => {
  const NAMES = ["aria-label", "title", "placeholder", "alt", "aria-valuetext"];
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { parentElement: around, textContent } = walker.currentNode;
    if (!around.closest("script, style, code, select[data-part=examples], [lang=en]")) found.push(textContent);
  }
  for (const element of document.body.querySelectorAll("*")) {
    for (const name of NAMES) found.push(element.getAttribute(name) ?? "");
  }
  return found;
}"""


def left(page: Page) -> set[str]:
    """Runs of Latin letters on a page that are neither allowed nor made of the letters of its text."""
    found = {word for words in page.evaluate(SAID) for word in re.findall(r"[A-Za-z][A-Za-z-]*[A-Za-z]", words)}
    return {word for word in found - ALLOWED if not set(word) <= set(TEXT)}


def open_all(page: Page) -> None:
    """Opens the sections below the maps, and draws what is in them."""
    page.wait_for_function(DRAWN)
    for summary in page.locator("details > summary").all():
        summary.click()
    page.wait_for_function("() => document.querySelector('.masks .legendtext') !== null")


def shares(page: Page) -> None:
    """Opens the dialog *Share*."""
    page.locator("[data-part=share]").click()
    expect(page.locator("dialog")).to_be_visible()


@pytest.fixture(scope="module")
def model() -> tv.Checkpoint:
    return tv.load_checkpoint("reverse", device="cpu")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_page_of_a_run_is_chinese(open_page: Callable[..., Page], model: tv.Checkpoint, width: int) -> None:
    trace = tv.decode(model, TEXT)
    page = open_page(tv.export.html(trace, "cross.2.3", 1, language="zh"), width=width, height=1600)
    open_all(page)
    assert page.evaluate("document.documentElement.lang") == "zh"
    with speaking("zh"):
        ((sentences),) = step_sentences(trace, "cross", [(1, 2)])
    expect(page.locator("[data-part=sentence]")).to_have_text(plain(sentences[1]).replace("`", ""))
    page.locator("[data-part=source] .token").nth(2).click()
    expect(page.locator(".said-of-pin")).to_contain_text("已固定")
    shares(page)
    assert left(page) == set()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_live_page_is_chinese_and_says_what_it_cannot_read(open_page: Callable[..., Page], model: tv.Checkpoint) -> None:
    page = open_page(live_html(model, TEXT, language="zh"), height=1600)
    page.fill("[data-part=text]", TEXT[1:])
    page.wait_for_function("(text) => document.title.startsWith(text)", arg=TEXT[1:])
    page.locator("[data-part=output] button").nth(2).click()
    page.locator(".boxes [data-part=off]").click()
    expect(page.locator("[data-part=changes]")).to_contain_text("改动")
    open_all(page)
    assert left(page) == set()
    trace = tv.decode(model, TEXT[1:], edits=["cross.1.1:zero"])
    with speaking("zh"):
        sentences = step_sentences(trace, "cross", [(0, 0)])[0]
    # The engine's numbers are not the same to the last digit.
    expect(page.locator("[data-part=sentence]")).to_contain_text(plain(sentences[2]).replace("`", "").partition("权重")[0])
    page.fill("[data-part=text]", "é")
    expect(page.locator("[data-part=told]")).to_contain_text("不是这个模型认识的字符")
    page.fill("[data-part=text]", "")
    expect(page.locator("[data-part=told]")).to_contain_text("文本是空的")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wrong_for_eyes_and_screen_readers(
    open_page: Callable[..., Page], model: tv.Checkpoint, scheme: str
) -> None:
    page = open_page(live_html(model, TEXT, language="zh"), width=1280, height=2400, scheme=scheme)
    open_all(page)
    assert list(faults(page)) == []


def test_lessons_lead_to_live_pages_of_their_language() -> None:
    for language in lesson_pages.LANGUAGES:
        cards = lesson_pages.lesson_data(lesson_pages.lessons(language)[0], language)["cards"]
        places = [card["place"] for card in cards if card["place"]]
        assert places and all(place["page"] == lesson_pages.live_page(place["model"], language) for place in places)
    assert lesson_pages.live_page("reverse", "zh") == "reverse-zh.html"
