"""A link copied in one browser opens the same view in another: one rich state of every page, on the shipped checkpoints."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.charts import at_rest, choose, choose_kind, link_of, wait_until_drawn

pytestmark = pytest.mark.browser

SEEN = """() => {
  const all = (selector, read) => [...document.querySelectorAll(selector)].map(read);
  const plain = (value) => ArrayBuffer.isView(value) || Array.isArray(value) ? Array.from(value, plain)
    : typeof value === 'number' && isNaN(value) ? null : value;
  const numbers = (trace) => ['x', 'y', 'z', 'text'].map((name) => plain(trace[name] ?? null));
  const value = (box) => [box.ariaLabel, box.type === 'checkbox' ? box.checked : box.value];
  return {
    // A kind that is not shown is not drawn anew.
    charts: all('.chart', (chart) => (chart.ariaHidden === 'true' ? null : chart.data?.map(numbers))),
    titles: all('.chart', (chart) => (chart.ariaHidden === 'true' ? null : chart.layout?.title?.text ?? '')),
    step: [...document.querySelectorAll('[data-part=output] .token')].findIndex((one) => one.classList.contains('now')),
    boxes: all('.stMain input:not([type=range]), .stMain textarea', value),
    chosen: all('[role=tab][aria-selected=true], [aria-checked=true], [data-box] [aria-pressed=true]', (one) => one.innerText),
    words: all('.stMain [data-testid=stMarkdownContainer], [data-part=sentence]', (one) => one.innerText),
  };
}"""


def settled(page: Page) -> dict[str, Any]:
    """What is to be seen once nothing moves any more."""
    page.wait_for_selector(".stMain input:not([type=range]), .stMain textarea", state="attached")
    seen = at_rest(page, SEEN)
    assert page.locator("[data-testid=stException]").count() == 0
    return seen


def same_in_another(page: Page, another: Page, *keys: str) -> None:
    for key in keys:
        page.wait_for_function("(key) => new URLSearchParams(location.search).has(key)", arg=key)
    here = settled(page)
    another.goto(link_of(page))
    expect(another.locator(".chart")).to_have_count(len(here["charts"]))
    there = settled(another)
    for what in here:
        assert there[what] == here[what], what


@pytest.mark.slow
def test_explore(page: Page, server: str, another: Page) -> None:
    page.goto(f"{server}/?text=hello")
    choose_kind(page, "decoder self-attention")
    page.wait_for_function("location.search.includes('kind=decoder')")
    page.get_by_role("tab", name="What if").click()
    page.get_by_role("radio", name="a beginning of your own").click()
    box = page.get_by_label("begins with")
    box.fill("xy")
    box.press("Enter")
    expect(page.locator(".stMain")).to_contain_text("They diverge at step 1.")
    page.locator("[data-part=output] button").nth(2).click()
    same_in_another(page, another, "kind", "what_if_begin", "step", "pin", "explore_tab")


@pytest.mark.slow
def test_a_closed_tab_keeps_what_was_typed(page: Page, server: str) -> None:
    page.goto(f"{server}/?text=hello&explore_tab=What+if&what_if_how=a+beginning+of+your+own&what_if_begin=xy")
    expect(page.locator(".stMain")).to_contain_text("They diverge at step 1.")
    for _ in range(2):
        page.get_by_role("tab", name="Export").click()
        expect(page.get_by_role("button", name="Prepare the file")).to_be_visible()
        page.get_by_role("tab", name="What if").click()
        expect(page.get_by_label("begins with")).to_have_value("xy")
    expect(page).to_have_url(re.compile("what_if_begin=xy"))


@pytest.mark.slow
def test_masks(page: Page, server: str, another: Page) -> None:
    page.goto(f"{server}/masks?sources=hello%0Aab&edits=cross:1-2")
    page.get_by_role("tab", name="Change and run again").click()
    choose(page, "A click on the mask", "a click flips the row")
    choose(page, "and reaches", "in this head")
    choose(page, "Mistake", "No causal mask")
    same_in_another(page, another, "edits", "masks_tab", "click", "reach", "mistake")


@pytest.mark.slow
def test_search(page: Page, server: str, another: Page) -> None:
    page.goto(f"{server}/?decoding=beam")
    page.get_by_role("button", name="Decoding").click()
    box = page.get_by_role("spinbutton", name="Beam size")
    box.fill("3")
    box.press("Enter")
    page.wait_for_function("location.search.includes('beam=3')")
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Heads").click()
    page.wait_for_function("location.search.includes('explore_tab=Heads')")
    settled(page)
    choose(page, "Tinted by", "entropy, of the largest possible")
    same_in_another(page, another, "beam", "explore_tab", "tint")


@pytest.mark.slow
def test_train(page: Page, server: str, another: Page) -> None:
    page.goto(f"{server}/train?form=true")
    choose(page, "Task", "sort")
    page.wait_for_function("location.search.includes('train_task=sort')")
    page.get_by_text("Advanced: all settings").click()
    box = page.get_by_role("spinbutton", name="d_model")
    box.fill("64")
    box.press("Enter")
    same_in_another(page, another, "train_task", "train_d_model")


@pytest.mark.slow
def test_how_it_learned(page: Page, server: str, another: Page) -> None:
    page.goto(f"{server}/train?learned=true&text=abcabd&checkpoint=reverse-small")
    wait_until_drawn(page)
    page.locator("[data-part=output] button").nth(3).click()
    same_in_another(page, another, "moment")


@pytest.mark.slow
def test_the_code_takes_the_step_of_the_player_and_is_in_the_link(page: Page, server: str, another: Page) -> None:
    page.goto(f"{server}/?text=hello")
    wait_until_drawn(page)
    expect(page.locator("[data-testid=stCode]")).to_have_count(0)
    charts = page.evaluate_handle("[...document.querySelectorAll('.chart')]")
    page.get_by_role("tab", name="Export").click()
    page.get_by_role("radio", name="SVG").click()
    page.get_by_text("Show the code").click()
    shown = page.locator("[data-testid=stCode]")
    expect(shown).to_contain_text("hello")
    for step in (3, 2):
        page.locator("[data-part=output] button").nth(step - 1).click()
        page.wait_for_function("(step) => location.search.includes(`step=${step}`)", arg=step)
        page.get_by_role("button", name="Take the player's step").click()
        expect(shown).to_contain_text(f"step={step - 1}")
    same_in_another(page, another, "export_format", "step", "explore_tab")
    page.get_by_role("tab", name="Masks").click()
    expect(page.get_by_text("Show the code")).to_have_count(1)
    expect(shown).to_contain_text("figures.mask")
    same_in_another(page, another, "code_of_tab", "explore_tab")
    assert page.evaluate("(before) => before.length && before.every((chart) => chart.isConnected)", charts)
