"""For eyes, keyboards and screen readers: axe on every page, contrast, focus, numbers as tables, the system's settings."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

import transformer_viz as tv
from tests.browser.accessible import background, contrast, faults
from tests.browser.charts import at_rest, choose_kind, head_of, step_of, wait_for_head, wait_for_step, wait_until_drawn
from tests.browser.drawn import DRAWN
from transformer_viz.figures.theme import THEMES
from transformer_viz.terms import place_label, row_labels

pytestmark = pytest.mark.browser

WIDE, PHONE = 1440, 390
POPOVER = "[data-testid=stPopoverBody]"
# What is out of sight has no pixels to look at.
TALL = 3600
TALLER = 6000
PAGES = {
    "explore": "/?text=abc&step=2",
    "refused": "/?text=%C3%84",
    "hidden": "/?text=hello&hide_answer=true",
    "projector": "/?text=abc&step=2&kind=decoder&pin=2,1&lines=on&projector=true",
    "drawing": "/?text=abc&step=2&where=true",
    "masks": "/masks",
    "changed": "/masks?sources=abc&masks_tab=Change+and+run+again&edits=cross:1-2",
    "search": "/?decoding=beam&text=abc",
    "compare": "/compare",
    "patched": "/compare?text=abc&checkpoint=reverse&b_text=abd&b_checkpoint=reverse&patching=true",
    "train": "/train",
    "drawings": "/train?where=true&train_variant=residual-post-norm",
    "learned": "/train?learned=true&checkpoint=reverse-small&text=abc",
    "survey": "/survey?survey=surveys/one",
    "compared": "/survey?survey=surveys/one&survey_beside=surveys/two&survey_number=role+mirror",
    "open": "/?checkpoint=trace+file",
}
# Each theme and each width once; ALL has every way in which a page opens.
ONCE = [("explore", "light", WIDE), ("masks", "dark", PHONE)]
ALL = [(name, scheme, width) for name in PAGES for scheme in ("light", "dark") for width in (WIDE, PHONE)]


def open_app(page: Page, server: str, name: str, scheme: Any = "light", width: int = WIDE) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": TALL})
    page.goto(server + PAGES[name])
    page.locator("main button:visible").first.wait_for()
    if name == "open":
        page.get_by_role("button", name="Open an example").click()
        wait_until_drawn(page)
    at_rest(page)


@pytest.mark.parametrize(("name", "scheme", "width"), ONCE)
def test_nothing_is_wrong_with_a_page_as_it_opens(page: Page, server: str, name: str, scheme: str, width: int) -> None:
    open_app(page, server, name, scheme, width)
    assert not [*faults(page)]


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), [("light", WIDE), ("dark", PHONE)])
@pytest.mark.parametrize("name", [name for name in PAGES if name != "open"])
def test_nothing_is_wrong_with_a_page_in_chinese(page: Page, server: str, name: str, scheme: Any, width: int) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": TALLER})
    page.goto(f"{server}{PAGES[name]}{'&' if '?' in PAGES[name] else '?'}lang=zh")
    page.locator("main button:visible").first.wait_for()
    at_rest(page)
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    # Nothing is cut, the link to the other language included.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    link = page.locator("a.language")
    assert link.evaluate("(link) => link.scrollWidth <= link.clientWidth && link.getBoundingClientRect().right <= innerWidth")
    assert not [*faults(page)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "scheme", "width"), ALL)
def test_nothing_is_wrong_with_anything_that_opens(page: Page, server: str, name: str, scheme: str, width: int) -> None:
    """Every tab, fold and popover."""
    open_app(page, server, name, scheme, width)
    page.set_viewport_size({"width": width, "height": TALLER})
    wrong: list[tuple[str, ...]] = []
    seen: set[str] = set()
    for place in places(page):
        wrong += [(place, fault) for fault in faults(page)]
        wrong += [(place, words, fault) for words in popovers(page, seen) for fault in faults(page, POPOVER)]
    assert not wrong


def places(page: Page) -> Iterator[str]:
    """The page, and each of its tabs, with every fold open."""
    tabs = page.get_by_role("tab").all_inner_texts()
    for tab in tabs or ["the page"]:
        if tabs:
            page.get_by_role("tab", name=tab, exact=True).click()
            at_rest(page)
        while (fold := page.locator("details:not([open]) > summary:visible")).count():
            fold.first.click()
            at_rest(page)
        yield tab


def popovers(page: Page, seen: set[str]) -> Iterator[str]:
    """Each that can be opened and is not yet seen, while it is open."""
    for button in page.locator("[data-testid=stPopover] button:visible").all():
        if (words := button.inner_text()) not in seen:
            seen.add(words)
            # On a projector the bar comes down where the keyboard is on it.
            button.focus()
            button.click()
            page.locator(POPOVER).wait_for()
            at_rest(page)
            yield words
            page.keyboard.press("Escape")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wrong_with_what_opens_beside_the_steps(page: Page, server: str, scheme: Any) -> None:
    """Each choice of lines, and in a window of 720 pixels the card to share, the examples and the settings."""
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 1280, "height": TALL})
    page.goto(f"{server}/?text=abc&step=4")
    wait_until_drawn(page)
    for lines in ("step", "all", "none"):
        page.get_by_role("combobox", name="Lines").select_option(lines)
        at_rest(page)
        assert not [*faults(page)], lines
    page.set_viewport_size({"width": 1280, "height": 720})
    at_rest(page)
    page.get_by_role("button", name="Share", exact=True).click()
    expect(page.get_by_role("dialog", name="Share")).to_be_visible()
    assert not [*faults(page, "dialog.share")]
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Share")).to_be_hidden()
    for name in ("Examples", "Settings"):
        page.get_by_role("button", name=name).click()
        page.locator(POPOVER).wait_for()
        at_rest(page)
        assert not [*faults(page, POPOVER)], name
        page.keyboard.press("Escape")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wrong_with_an_exported_page(open_page: Callable[..., Page], trace: tv.Trace, scheme: str) -> None:
    for width in (WIDE, PHONE):
        page = open_page(tv.export.html(trace, step=1), width=width, height=TALL, scheme=scheme)
        page.wait_for_function(DRAWN)
        assert not [*faults(page)]
        for fold in page.locator("summary").all():
            fold.click()
        page.locator(".masks .main-svg").last.wait_for()
        assert not [*faults(page)]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wrong_with_an_exported_figure(open_page: Callable[..., Page], trace: tv.Trace, scheme: Any) -> None:
    figure = tv.figures.mosaic(trace, "cross", style=tv.figures.Style(scheme))
    page = open_page(tv.export.figure_html(figure, title="All heads"), height=TALL, scheme=scheme)
    page.locator("#figure .main-svg").first.wait_for()
    assert not [*faults(page)]


# ---- the keyboard

MOVING = """() => {
  const all = (root) => [...root.querySelectorAll('*')].flatMap((one) => [one, ...(one.shadowRoot ? all(one.shadowRoot) : [])]);
  const seconds = (times) => Math.max(...times.split(',').map(parseFloat));
  return all(document).flatMap((one) => [undefined, '::before', '::after'].flatMap((part) => {
    const { transitionDuration, animationDuration, animationName, animationIterationCount } = getComputedStyle(one, part);
    const isMoving = seconds(transitionDuration) > 0.001 || seconds(animationDuration) > 0.001;
    const isEndless = animationName !== 'none' && animationIterationCount !== '1';
    return isMoving || isEndless ? [`${one.tagName}.${one.className}${part ?? ''}`] : [];
  }));
}"""


@pytest.fixture(scope="module")
def trace() -> tv.Trace:
    return tv.decode(tv.load_checkpoint("reverse", device="cpu"), "abc")


def open_explore(page: Page, server: str) -> None:
    page.goto(f"{server}{PAGES['explore']}")
    wait_for_step(page, 1)
    at_rest(page)


def test_a_chart_has_its_numbers_as_a_table_one_key_away(page: Page, server: str, trace: tv.Trace) -> None:
    open_explore(page, server)
    _, layer, head = head_of(page)
    switch, table = page.locator(".viewer > .numbers-switch"), page.locator(".viewer > .numbers-table table")
    switch.focus()
    page.keyboard.press("Enter")
    expect(table.first).to_be_visible()
    cells = table.first.evaluate("(table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent))")
    keys = [place_label(place, token) for place, token in enumerate(trace.cross.keys)]
    assert cells[0] == ["", *keys]
    assert [row[0] for row in cells[1:]] == row_labels(trace.cross.queries, trace.output_tokens)
    np.testing.assert_allclose(
        [[*map(float, row[1:])] for row in cells[1:3]], trace.cross.weights[layer, int(head), :2], rtol=1e-3
    )
    assert {*cells[3][1:], *cells[4][1:]} == {""}, "not yet written"
    # The player keeps its keys, and the table follows.
    page.locator(".viewer > .numbers-table").focus()
    page.keyboard.press("Escape")
    expect(table).to_have_count(0)
    expect(switch).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    wait_for_step(page, 2)
    row = page.locator(".viewer > .numbers-table tr").nth(3)
    expect(row).to_contain_text(re.compile(r"\d"))


@pytest.mark.slow
def test_tabs_are_one_stop_of_the_tab_key_and_the_arrows_open_them(page: Page, server: str) -> None:
    open_explore(page, server)
    tabs, step = page.get_by_role("tab"), step_of(page)
    names = tabs.all_inner_texts()
    tabs.first.focus()
    for key, place in (("ArrowLeft", -1), ("ArrowRight", 0), ("End", -1), ("Home", 0), ("ArrowRight", 1)):
        page.keyboard.press(key)
        expect(page.get_by_role("tabpanel", name=names[place], exact=True)).to_be_visible()
        expect(tabs.nth(place)).to_be_focused()
        at_rest(page)
        assert [tab.inner_text() for tab in tabs.all() if tab.get_attribute("tabindex") == "0"] == [names[place]]
    assert step_of(page) == step, "the player has the arrows elsewhere"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('[role=tabpanel]') !== null")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PAGES if name != "refused"])
def test_every_chart_of_every_page_says_what_it_shows(page: Page, server: str, name: str) -> None:
    """In words, and in a table of its numbers."""
    open_app(page, server, name)
    for _ in places(page):
        for chart in page.locator(".charted:visible").all():
            assert chart.locator(".chart").get_attribute("aria-label")
            switch = chart.locator(".numbers-switch")
            switch.focus()
            page.keyboard.press("Enter")
            said = chart.locator(".numbers-table").inner_text()
            assert not re.search(r"undefined|%\{|null|<br>|NaN", said)
            page.keyboard.press("Enter")


@pytest.mark.slow
def test_the_output_is_one_stop_and_its_arrows_step(page: Page, server: str) -> None:
    open_explore(page, server)
    tokens = page.locator("[data-part=output] button")
    assert tokens.evaluate_all("(all) => all.map((one) => one.tabIndex)") == [-1, 0, -1, -1]
    tokens.nth(1).focus()
    page.keyboard.press("ArrowRight")
    wait_for_step(page, 2)
    expect(tokens.nth(2)).to_be_focused()
    # One Tab leads out of it, and one back to the step that is shown.
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('[data-part=output]') === null")
    page.keyboard.press("Shift+Tab")
    expect(tokens.nth(2)).to_be_focused()


@pytest.mark.slow
def test_a_screen_reader_hears_which_page_is_open_and_what_is_pinned(page: Page, server: str) -> None:
    open_explore(page, server)
    expect(page.get_by_role("heading", level=1)).to_have_text("Explore")
    pressed = "(all) => all.map((one) => one.ariaPressed)"
    source, output = (page.locator(f"[data-part={strip}] .token") for strip in ("source", "output"))
    n_source = source.count()
    assert source.evaluate_all(pressed) == n_source * ["false"]
    source.nth(1).click()
    assert source.evaluate_all(pressed) == ["false", "true", *(n_source - 2) * ["false"]]
    assert output.evaluate_all(pressed) == 4 * ["false"]
    output.nth(2).click()
    assert source.evaluate_all(pressed) == n_source * ["false"]
    assert output.evaluate_all(pressed) == ["false", "false", "true", "false"]
    # The source reads nothing of what is written, and its tokens cannot be pinned there.
    choose_kind(page, "decoder self-attention")
    wait_for_head(page, "decoder", 0, 0)
    at_rest(page)
    assert source.evaluate_all(pressed) == n_source * [None]
    assert output.evaluate_all(pressed) == 4 * ["false"]
    page.get_by_role("link", name="Masks").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Masks")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_keyboard_sees_where_it_is(page: Page, server: str, scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme)
    open_explore(page, server)
    link, button = page.get_by_role("link", name="Masks"), page.get_by_role("button", name="Settings")
    for element in (link, button, page.locator("summary").first):
        element.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        expect(element).to_be_focused()
        names = ["outlineStyle", "outlineWidth", "outlineColor"]
        style, width, colour = element.evaluate("(one, names) => names.map((name) => getComputedStyle(one)[name])", names)
        assert style == "solid" and float(width.removesuffix("px")) >= 2
        paper = THEMES[scheme].paper
        ring = [int(number) for number in re.findall(r"\d+", colour)]
        assert contrast(ring[:3], [int(paper[place : place + 2], 16) for place in (1, 3, 5)]) >= 3


# ---- the system's settings


@pytest.mark.slow
def test_without_motion_nothing_moves(page: Page, server: str) -> None:
    """But the player, which steps: no transition, no animation, also within the player and before and after an element."""
    page.goto(f"{server}{PAGES['explore']}&lines=on")
    wait_for_step(page, 1)
    at_rest(page)
    # In one go: once the step has rested, nothing moves any more.
    step = "document.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }))"
    moving = f"() => {{ {step}; return [document.querySelectorAll('.lines.moves path').length, ({MOVING})()]; }}"
    n_lines, found = page.evaluate(moving)
    assert n_lines and found == []
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(moving)[1]


@pytest.mark.slow
def test_forced_colours_show_what_is_chosen(page: Page, server: str) -> None:
    page.emulate_media(forced_colors="active")
    open_explore(page, server)
    kinds = page.locator(".kinds button")
    assert odd_ones(kinds) == [2]
    assert odd_ones(page.locator(".st-key-pages a")) == [0]
    assert odd_ones(page.locator("[data-part=output] button")) == [1]
    kinds.first.click()
    wait_for_head(page, "encoder", 0, 0)
    assert odd_ones(kinds) == [0]


def odd_ones(buttons: Locator) -> list[int]:
    """Those on another background than all others, as it is seen: a style says what it was before the system's colours."""
    backgrounds = [background(button) for button in buttons.all()]
    return [place for place, here in enumerate(backgrounds) if backgrounds.count(here) == 1]


def test_the_contrast_is_that_of_the_definition() -> None:
    assert contrast((255, 255, 255), (0, 0, 0)) == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.478, abs=1e-3)
    assert contrast(np.array([90, 90, 90]), (90, 90, 90)) == 1
