"""The browser's history: one entry for each page, with its whole query; and what was chosen on a page is there again."""

import re
import time
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.charts import PATIENCE_MS, TREE, at_rest, click_point, click_tile, small, wait_for_link, wait_until_drawn
from transformer_viz.views import pages, path

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CROSS = small("cross")
PATHS = {view.TITLE: path(view) for view in pages()}
TITLES = [*PATHS]
STANDS = """() => {
  const value = (key) => document.querySelector(`.st-key-${key} :is(input, textarea)`)?.value ?? null;
  const chosen = (selector) => [...document.querySelectorAll(selector)].map((one) => one.innerText);
  return {
    page: document.querySelector('h1').textContent,
    address: location.pathname + '?' + [...new URLSearchParams(location.search)].map(String).sort().join('&'),
    text: document.querySelector('.st-key-text [data-testid=stBidiComponentIsolated]')?.shadowRoot
      .querySelector('input, textarea')?.value,
    picture: [...document.querySelectorAll(
      ':is(.viewer, .heads, .learned, .one-head) :is([data-box] [aria-pressed=true], select, .said-of-pin, .token.now)')]
      .map((one) => one.value || one.textContent),
    typed: ['text', 'b_text', 'sources', 'targets', 'edits', 'train_name', 'beam'].map(value),
    chosen: ['checkpoint', 'b_checkpoint', 'layer', 'head', 'train_task', 'survey'].map(value),
    tabs: chosen('[role=tab][aria-selected=true]'),
  };
}"""


def stands(page: Page) -> dict[str, Any]:
    return at_rest(page, STANDS)


def expect_stands(page: Page, before: dict[str, Any], words: str) -> None:
    """A busy server may rest between two answers: what counts is what the page comes to."""
    end = time.monotonic() + PATIENCE_MS / 1000
    while stands(page) != before and time.monotonic() < end:
        pass
    assert stands(page) == before, words


def press(page: Page, title: str) -> None:
    page.locator(".st-key-pages").get_by_role("link", name=title).click()
    expect(page.locator("h1")).to_have_text(title)


def fill(page: Page, key: str, text: str) -> None:
    box = page.locator(f".st-key-{key} :is(input, textarea)").first
    box.fill(text)
    box.press("ControlOrMeta+Enter" if box.evaluate("(box) => box.tagName") == "TEXTAREA" else "Enter")


# Streamlit forgets a press that comes while the answer to the last one is written into the address.
def on_explore(page: Page) -> None:
    fill(page, "text", "hello")
    expect(page.locator("[data-part=source]")).to_contain_text("hello")
    page.locator("[data-part=output] button").nth(2).click()
    page.wait_for_function("location.search.includes('step=3')")
    at_rest(page)
    page.locator("[data-part=source] > *").nth(1).click()
    page.wait_for_function("location.search.includes('pin=')")
    at_rest(page)
    page.get_by_role("tab", name="Heads").click()
    page.wait_for_function("location.search.includes('explore_tab=Heads')")


def on_masks(page: Page) -> None:
    fill(page, "sources", "hello\nab")
    page.wait_for_function("location.search.includes('sources=hello')")
    at_rest(page)
    page.get_by_role("tab", name="Change and run again").click()
    page.wait_for_function("location.search.includes('masks_tab=Change')")


def on_compare(page: Page) -> None:
    fill(page, "text", "5 May 2024")
    page.wait_for_function("location.search.includes('text=5+May')")
    at_rest(page)
    fill(page, "b_text", "May 6 2024")
    page.wait_for_function("location.search.includes('b_text=May+6')")


def on_survey(page: Page) -> None:
    page.get_by_role("tab", name="Outputs").click()
    page.wait_for_function("location.search.includes('survey_tab=Outputs')")


def on_train(page: Page) -> None:
    page.get_by_text("A training of your own", exact=True).click()
    page.wait_for_function("location.search.includes('form=true')")
    at_rest(page)
    fill(page, "train_name", "mine-7")
    page.wait_for_function("location.search.includes('train_name=mine-7')")


ACTS = {
    "Explore": on_explore,
    "Masks": on_masks,
    "Compare": on_compare,
    "Over many texts": on_survey,
    "Train": on_train,
}


@pytest.mark.parametrize("title", ACTS)
def test_each_pair_of_pages(new_page: Page, server: str, title: str) -> None:
    page = new_page
    page.goto(f"{server}/{'' if title == TITLES[0] else PATHS[title]}")
    expect(page.locator("h1")).to_have_text(title)
    at_rest(page)
    ACTS[title](page)
    before = stands(page)
    for other in TITLES:
        if other == title:
            continue
        n_entries = page.evaluate("history.length")
        press(page, other)
        there = stands(page)
        assert there["page"] == other
        assert page.evaluate("history.length") == n_entries + 1, other
        page.go_back()
        expect(page.locator("h1")).to_have_text(title)
        expect_stands(page, before, f"Back from {other}")
        page.go_forward()
        expect(page.locator("h1")).to_have_text(other)
        expect_stands(page, there, f"Forward to {other}")
        press(page, title)
        expect_stands(page, before, f"by navigation from {other}")


def test_back_goes_through_the_pages(new_page: Page, server: str) -> None:
    page = new_page
    page.goto(server)
    wait_until_drawn(page, CROSS)
    at_rest(page)
    click_tile(page, CROSS, 0, 2)
    wait_for_link(page, head="head 3")
    seen = []
    for title in TITLES[1:]:
        seen.append(stands(page))
        press(page, title)
    for before in reversed(seen):
        page.go_back()
        expect(page.locator("h1")).to_have_text(before["page"])
        expect_stands(page, before, "Back")


def test_a_branch_of_a_search_is_there_again(new_page: Page, server: str) -> None:
    page = new_page
    page.goto(f"{server}/?decoding=beam&beam=3&text=thisqaipa&checkpoint=reverse-small&all_controls=true")
    wait_until_drawn(page, TREE)
    at_rest(page)
    click_point(page, TREE, 8, 2)
    page.wait_for_function("location.search.includes('node=')")
    before = stands(page)
    for title in ("Compare", "Train"):
        press(page, title)
        stands(page)
    page.go_back()
    page.go_back()
    expect(page.locator("h1")).to_have_text("Explore")
    expect_stands(page, before, "Back")
    press(page, "Masks")
    stands(page)
    press(page, "Explore")
    expect_stands(page, before, "by navigation")


def test_a_button_leads_to_another_page_as_its_link_does(new_page: Page, server: str) -> None:
    page = new_page
    page.goto(f"{server}/?text=hello&explore_tab=Heads&all_controls=true")
    wait_until_drawn(page)
    before = stands(page)
    page.get_by_role("button", name="Compare with").click()
    page.get_by_role("button", name="an edit: this head switched off").click()
    expect(page.locator("h1")).to_have_text("Compare")
    assert stands(page)["typed"][:2] == ["hello", "hello"]
    expect(page).to_have_url(re.compile("b_edits=cross"))
    page.go_back()
    expect(page.locator("h1")).to_have_text("Explore")
    assert stands(page) == before
