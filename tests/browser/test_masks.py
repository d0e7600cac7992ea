"""The mask laboratory in a real browser: click a cell, see the output change, share it, take it back."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, WebSocketRoute, expect

import transformer_viz as tv
from tests.browser.charts import ROWS, at_rest, link_of, wait_for_weights, wait_until_drawn
from transformer_viz.text_display import display_text
from transformer_viz.trace.attention import Attention

pytestmark = pytest.mark.browser

EDIT = ".pair [data-part=mask-now]"
SCORES = ".one-head [data-part=focus]"
CONFIGURED = ".st-key-config-masks-chart .chart"
OVER_MASKS = """(selector) => {
  const chart = document.querySelector(selector);
  if (!chart?.__drawn || chart._fullLayout.xaxis2.domain[0] !== chart._fullLayout.xaxis.domain[0]) return false;
  const tops = [...chart.querySelectorAll('.annotation-text')].map((text) => text.getBoundingClientRect().top);
  return [Math.min(...tops) - chart.querySelector('.legend').getBoundingClientRect().bottom];
}"""
"""Once the masks stand below each other: how many pixels are between the legend and the first words below it."""


def open_masks(page: Page, server: str, **query: str) -> None:
    page.goto(f"{server}/masks?{urlencode(query)}")
    expect(page.get_by_role("tab", name="Certificate")).to_be_visible()


def ready(page: Page, chart: str) -> Locator:
    wait_until_drawn(page, chart)
    return page.locator(chart)


def hidden(attention: Attention, layer: int, head: int) -> np.ndarray:
    """A head's weights as a map has them: none where it is masked."""
    return np.where(attention.head_mask(layer, head), np.nan, attention.head(layer, head))


def click_cell(page: Page, chart: str, query: int | None, key: int | None) -> None:
    """At the middle of a cell, from 0; None is the label beside the row or below the column."""
    ready(page, chart).scroll_into_view_if_needed()
    page.mouse.click(*place_of(page, chart, query, key))


def place_of(page: Page, chart: str, query: int | None, key: int | None) -> tuple[float, float]:
    return page.evaluate(
        """([selector, query, key]) => {
          const chart = document.querySelector(selector), plot = chart._fullLayout._plots.xy;
          const box = chart.querySelector('.nsewdrag').getBoundingClientRect();
          return [key === null ? box.left - 20 : box.left + plot.xaxis.d2p(key),
                  query === null ? box.bottom + 15 : box.top + plot.yaxis.d2p(query)];
        }""",
        [chart, query, key],
    )


def edits(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Edits as text")


def words(page: Page) -> str:
    return page.locator(".stMain").inner_text()


@pytest.fixture(scope="module")
def checkpoint() -> tv.Checkpoint:
    return tv.load_checkpoint("reverse", device="cpu")


def test_a_click_on_a_cell_changes_the_output_and_reset_takes_it_back(
    page: Page, server: str, checkpoint: tv.Checkpoint
) -> None:
    open_masks(page, server, sources="reversethis\nhello", masks_tab="Change and run again")
    # Step 5 of 11 reads t and copies the e at key 8: exactly that cell is closed.
    click_cell(page, EDIT, 4, 7)
    expect(edits(page)).to_have_value("cross:5-8")
    after = tv.decode(checkpoint, ["reversethis", "hello"], edits=["cross:5-8"])[0]
    assert after.text != "sihtesrever"
    expect(page.get_by_text(f"it becomes {after.text}").first).to_be_visible()
    expect(page).to_have_url(re.compile("edits=cross%3A5-8"))
    reasons: Any = page.evaluate(f"[...document.querySelector('{EDIT}')._fullData[0].z[4]]")
    assert reasons[7] == 4
    page.get_by_role("button", name="Reset all").click()
    expect(edits(page)).to_have_value("")
    expect(page.get_by_text("Nothing is changed yet")).to_be_visible()
    expect(page).not_to_have_url(re.compile("edits="))


class HeldAnswers:
    """What the server sends to a page, which may be kept back for a while."""

    def __init__(self, page: Page) -> None:
        self.page, self.is_held, self.held = page, False, list[tuple[WebSocketRoute, str | bytes]]()
        page.route_web_socket(re.compile("_stcore/stream"), self._route)

    def _route(self, browser: WebSocketRoute) -> None:
        browser.connect_to_server().on_message(lambda message: self._answer(browser, message))

    def _answer(self, browser: WebSocketRoute, message: str | bytes) -> None:
        if self.is_held:
            self.held.append((browser, message))
        else:
            browser.send(message)

    @contextmanager
    def held_back(self) -> Generator[None]:
        """While what is within is pressed."""
        self.is_held = True
        yield
        # Each of the presses has been heard.
        while not self.held:
            self.page.wait_for_timeout(50)
        self.is_held, held = False, self.held
        self.held = []
        for browser, message in held:
            browser.send(message)


def test_what_was_pressed_stays_where_the_next_press_comes_before_its_answer(page: Page, server: str) -> None:
    """Its message has the boxes as the browser still knows them."""
    answers = HeldAnswers(page)
    open_masks(page, server, sources="hello", masks_tab="Change and run again")
    ready(page, EDIT)
    with answers.held_back():
        click_cell(page, EDIT, 2, 1)
        page.get_by_role("tab", name="Certificate").click()
    expect(page).to_have_url(re.compile("masks_tab=Certificate"))
    expect(page).to_have_url(re.compile("edits=cross%3A3-2"))
    page.get_by_role("tab", name="Change and run again").click()
    expect(edits(page)).to_have_value("cross:3-2")
    with answers.held_back():
        page.get_by_role("button", name="Reset all").click()
        page.get_by_role("tab", name="Certificate").click()
    expect(page).to_have_url(re.compile("masks_tab=Certificate"))
    expect(page).not_to_have_url(re.compile("edits="))


@pytest.mark.slow
def test_a_label_flips_its_row_or_column_a_second_click_takes_it_back_and_a_row_can_be_forced(
    page: Page, server: str, checkpoint: tv.Checkpoint
) -> None:
    open_masks(page, server, sources="hello\nhello you", masks_tab="Change and run again", kind="cross", layer="1", head="1")
    click_cell(page, EDIT, 2, None)
    expect(edits(page)).to_have_value("cross:3-*")
    click_cell(page, EDIT, None, 1)
    expect(edits(page)).to_have_value("cross:3-*, cross:*-2")
    click_cell(page, EDIT, 2, None)
    expect(edits(page)).to_have_value("cross:*-2")
    click_cell(page, EDIT, None, 1)
    expect(edits(page)).to_have_value("")
    # And one click forces a row onto a key of one head.
    page.get_by_label("A click on the mask").click()
    page.get_by_role("option", name="forces the row onto the key").click()
    page.get_by_label("and reaches").click()
    page.get_by_role("option", name="this head").click()
    click_cell(page, EDIT, 0, 1)
    expect(edits(page)).to_have_value("cross.1.1:1=2")
    after = tv.decode(checkpoint, ["hello", "hello you"], edits=["cross.1.1:1=2"])[0]
    expect(page.get_by_text(f"it becomes {after.text}").first).to_be_visible()


@pytest.mark.slow
def test_a_link_opens_the_same_change_in_another_browser(page: Page, server: str, checkpoint: tv.Checkpoint) -> None:
    open_masks(
        page,
        server,
        sources="aaaaaaaa\nreversethis",
        sentence="1",
        mistake="wrong-sign",
        edits="cross.1.1:zero",
        masks_tab="Loss",
    )
    after = tv.decode(checkpoint, ["aaaaaaaa", "reversethis"], mistake="wrong-sign", edits=["cross.1.1:zero"])[0]
    text = display_text(after.text)
    expect(page.locator(".stMain")).to_contain_text(f"“Additive mask with the wrong sign” and 1 edit it becomes {text}")
    expect(page.get_by_role("tab", name="Loss")).to_have_attribute("aria-selected", "true")
    url = link_of(page)
    page.goto("about:blank")
    page.goto(url)
    expect(page.locator(".stMain")).to_contain_text(f"and 1 edit it becomes {text}")


@pytest.mark.slow
def test_a_click_on_a_row_shows_its_numbers(page: Page, server: str) -> None:
    open_masks(page, server, sources="reversethis\nhello", sentence="2", masks_tab="Scores to weights", kind="decoder")
    click_cell(page, SCORES, 3, 1)
    expect(page.get_by_text("Row 4 in numbers; the weights add up to 1.0000")).to_be_visible()
    expect(page).to_have_url(re.compile(r"row=row\+4"))


def test_a_leak_is_seen(page: Page, server: str) -> None:
    """A model that learned without the causal mask looks at the token that it must write, which the right mask hides."""
    open_masks(page, server, checkpoint="reverse-leak", sources="reversethis", masks_tab="Mistakes", mistake="no-causal")
    expect(page.get_by_text("of its weight on what the right mask hides")).to_be_visible()
    sides = [f".pair [data-side={side}] [data-part=focus]" for side in "BA"]
    for chart in sides:
        wait_until_drawn(page, chart)
    numbers = f"({ROWS})(document.querySelector(chart)).map((row) => [...row].map((weight) => (isNaN(weight) ? null : weight)))"
    right, wrong = (page.evaluate(f"(chart) => {numbers}", chart) for chart in sides)
    assert len(right) == len(wrong) == 12
    ahead = [(right[t][t + 1], wrong[t][t + 1]) for t in range(11)]
    assert all(hidden is None for hidden, _ in ahead)
    assert sum(seen for _, seen in ahead) / 11 > 0.5


@pytest.mark.slow
def test_a_mistake_in_the_gallery_and_the_certificate_that_names_it(page: Page, server: str) -> None:
    open_masks(page, server, checkpoint="reverse-small", sources="aaaaaaaa\nreversethis", masks_tab="Mistakes")
    card = page.locator(".st-key-mistake-source-mask-forgotten")
    expect(card).to_contain_text("Forbidden keys get")
    card.get_by_role("button", name="Make this mistake").click()
    expect(card.get_by_role("button", name="Take it back")).to_be_visible()
    page.get_by_role("tab", name="Certificate").click()
    page.get_by_text("Check this model", exact=True).click()
    expect(page.get_by_text("This looks like Source mask forgotten in decoding")).to_be_visible()
    assert "Leaking" in words(page)
    page.get_by_role("button", name="Reset all").click()
    # The toggle was on for the mistake, and is off without it.
    expect(page.get_by_role("switch", name="Check this model")).not_to_be_checked()
    page.get_by_text("Check this model", exact=True).click()
    expect(page.get_by_text("Sound: nothing that must not be seen")).to_be_visible()


PLACES = """() => ['mask-now', 'difference'].map((part) => {
  const chart = document.querySelector(`.pair [data-part=${part}]`);
  const { top, bottom } = chart.querySelector('.nsewdrag').getBoundingClientRect();
  return { top, bottom, rows: chart._fullLayout.yaxis.range };
})"""
"""Of the mask and of what it changes: the map, and its rows."""


@pytest.mark.slow
def test_cause_and_effect_are_on_the_screen_together(page: Page, server: str) -> None:
    open_masks(page, server, masks_tab="Change and run again")
    click_cell(page, EDIT, 4, 7)
    expect(page.get_by_text("The output changes from step 5 on")).to_be_in_viewport(ratio=1)
    expect(page.get_by_text("Largest change: 1, in cross-attention")).to_be_in_viewport(ratio=1)
    mask, change = at_rest(page, PLACES)
    assert mask["rows"] == change["rows"]
    assert max(abs(mask[side] - change[side]) for side in ("top", "bottom")) <= 1, "row beside row"
    assert mask["top"] > 0 and max(mask["bottom"], change["bottom"]) <= 900
    page.set_viewport_size({"width": 390, "height": 844})
    mask, change = at_rest(page, PLACES)
    assert mask["bottom"] < change["top"]
    assert change["bottom"] - mask["top"] <= 844, "below each other, on one screen"


@pytest.mark.slow
def test_stop_is_heard(page: Page, server: str) -> None:
    """Without a causal mask every row is computed again at every step: 500 strings take seconds."""
    open_masks(page, server, sources="hello", masks_tab="Change and run again", edits="decoder:off")
    page.get_by_text("The effect over 500 strings", exact=True).click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    page.get_by_text("The effect over 500 strings", exact=True).click()
    expect(page.get_by_text(re.compile(r"^\d+ of 500 strings · stopped$"))).to_be_visible()
    expect(page.get_by_role("switch", name="The effect over 500 strings")).not_to_be_checked()


@pytest.mark.slow
def test_the_masks_are_drawn_on_a_phone_and_nothing_runs_off(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    open_masks(page, server, sources="hello\nab")
    wait_until_drawn(page, ".masked [data-part=mask-now]")
    wait_until_drawn(page, ".masked [data-part=focus]")
    page.wait_for_function(
        "[...document.querySelectorAll('.chart')].every(c => c.getBoundingClientRect().right <= window.innerWidth + 1)"
    )
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    # At twice the size the kinds of attention are whole.
    page.set_viewport_size({"width": 720, "height": 450})
    page.get_by_role("tab", name="Change and run again").click()
    ready(page, EDIT)
    row = page.get_by_role("group", name="Attention").first
    assert row.evaluate("row => row.scrollWidth <= row.clientWidth && row.scrollLeft === 0")
    assert row.get_by_role("button").count() == 3


def test_a_press_shows_another_kind_head_and_row_of_masks_and_weights(page: Page, server: str) -> None:
    """Nothing of it waits for the server: what is pressed is there, and a link opens it in another browser."""
    open_masks(page, server, sources="hello\nab", sentence="2", masks_of="this sentence, large")
    mask, weights = ".masked [data-part=mask-now]", ".masked [data-part=focus]"
    read = tv.decode_forced(tv.load_checkpoint("reverse", device="cpu"), ["hello", "ab"])[1]
    ready(page, mask)
    page.get_by_role("group", name="Attention").get_by_role("button", name="decoder self-attention").click()
    page.get_by_label("Head", exact=True).select_option("head 3")
    page.get_by_role("button", name="Last step").click()
    for chart, wanted in ((mask, read.decoder.head_reasons(0, 2)), (weights, hidden(read.decoder, 0, 2))):
        wait_for_weights(page, wanted, 1e-5, chart)
    # A cell that is pointed at is marked in both.
    x, y = place_of(page, weights, 2, 1)
    page.mouse.move(x, y)
    page.wait_for_function(
        "(chart) => document.querySelector(chart).querySelector('.marks .pointed').getAttribute('d')", arg=mask
    )
    url = link_of(page)
    page.goto("about:blank")
    page.goto(url)
    wait_for_weights(page, hidden(read.decoder, 0, 2), 1e-5, weights)


def test_before_after_and_difference_are_those_of_the_runs(page: Page, server: str, checkpoint: tv.Checkpoint) -> None:
    edit = "cross.1:3-2"
    open_masks(page, server, sources="hello\nab", masks_tab="Change and run again", edits=edit)
    before, after = (tv.decode(checkpoint, ["hello", "ab"], edits=edits)[0] for edits in ((), (edit,)))
    ready(page, EDIT)
    page.get_by_role("button", name="Last step").first.click()
    for kind, layer, head in (("cross", 1, 2), ("decoder", 0, 1), ("encoder", 1, 0), ("cross", 0, 3)):
        page.locator(f"[data-side=A] [data-box=kind] [value={kind}]").click()
        for name, value in (("layer", layer), ("head", head)):
            page.locator(f"[data-side=A] [data-box={name}]").select_option(str(value))
        first, second = (hidden(run.attentions[kind], layer, head) for run in (before, after))
        wait_for_weights(page, first, 1e-5, ".pair [data-side=B] [data-part=focus]")
        wait_for_weights(page, second, 1e-5, ".pair [data-side=A] [data-part=focus]")
        if first.shape == second.shape and (np.isnan(first) == np.isnan(second)).all():
            wait_for_weights(page, second - first, 1e-5, ".pair [data-part=difference]")


def test_a_phone_has_the_legend_above_the_masks(page: Page, server: str) -> None:
    """The first figure is a wide window's, where it comes before the phone has said what it is; Plotly by itself leaves the
    legend where that figure had it, over what stands above a map."""
    page.set_viewport_size({"width": 390, "height": 844})
    open_masks(page, server, sources="hello\nab", masks_tab="From a configuration")
    [room] = page.wait_for_function(OVER_MASKS, arg=CONFIGURED).json_value()
    assert room >= 0
