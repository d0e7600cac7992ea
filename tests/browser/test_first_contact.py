"""A first visit to the bare address: nothing is there before it happened, and after the last step there is somewhere to go."""

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from tests.browser.accessible import faults
from tests.browser.charts import (
    FOCUS,
    ROWS_UNCOVERED,
    area,
    at_rest,
    drawn,
    head_of,
    small,
    texts,
    wait_for_head,
    wait_for_link,
    wait_for_step,
    wait_until_drawn,
)
from tests.browser.told import told, weights_from
from tests.needs import slow
from transformer_viz import tasks
from transformer_viz.analysis.head_order import farthest_head

pytestmark = pytest.mark.browser

DOM = """() => {
  const told = (root) => [...root.querySelectorAll('*')].map((element) => [
    ...[...element.attributes].map(({ value }) => value),
    ...[...element.childNodes].filter(({ nodeType }) => nodeType === 3).map(({ data }) => data),
    element.value ?? '', element.shadowRoot ? told(element.shadowRoot) : '',
  ].join(' ')).join(' ');
  return told(document.body);
}"""
"""All texts and attributes of a page, also within components."""
CROSS = small("cross")
OUTPUT = "[data-part=output] button"


def open_bare(page: Page, server: str) -> None:
    page.goto(server)
    wait_for_step(page, 0)
    wait_until_drawn(page, CROSS)
    at_rest(page)


def cell(page: Page, row: int, column: int) -> tuple[float, float]:
    """The middle of a cell of the large map, of 12 rows and 13 columns."""
    box = area(page)
    return box["x"] + box["width"] * (column + 0.5) / 13, box["y"] + box["height"] * (row + 0.5) / 12


def test_nothing_is_on_the_page_before_it_happened(page: Page, server: str) -> None:
    open_bare(page, server)
    written = [*"sihtesrever", "<end>"]
    for step in (0, 3):
        page.locator(OUTPUT).nth(step).click()
        wait_for_step(page, step)
        at_rest(page)
        told = page.evaluate(DOM)
        assert "reversethis" in told and "sihte" not in told
        assert page.locator(OUTPUT).all_text_contents() == [*written[: step + 1], *[""] * (11 - step)]
        rows = [label for label in texts(page, "ytick") if "→" in label]
        assert rows == [f"{t + 1}·{(['<start>', *written])[t]}→{written[t]}" for t in range(step + 1)]
        assert page.locator(CROSS).evaluate(ROWS_UNCOVERED) == step + 1
    expect(page.locator("[data-part=answer]")).to_have_text("")


@pytest.mark.slow
@pytest.mark.parametrize(("option", "judged"), [("s", "Right. Step 1 of 12"), slow("r", "Not so: you said r. Step 1 of 12")])
def test_it_asks_first_and_hides_until_it_is_answered(page: Page, server: str, option: str, judged: str) -> None:
    page.context.clear_cookies()
    open_bare(page, server)
    trace = tv.decode(tv.load_checkpoint("reverse"), "reversethis")
    numbers = weights_from(trace, 0)
    sentence, ways = page.locator("[data-part=sentence]"), page.locator(".ways button")
    expect(sentence).to_contain_text("Before you look: this model writes text backwards. Which letter will it write first?")
    options = ways.all_text_contents()
    assert {"s", "r"} < {*options} and {*options} <= {*"reversethis"}
    assert not told(page, numbers) and not page.get_by_role("tab").count()
    assert not [*faults(page)]
    assert page.locator(OUTPUT).all_text_contents() == ["?", *[""] * 11]
    assert "sihte" not in page.evaluate(DOM)
    ways.get_by_text(option, exact=True).press("Enter")
    expect(sentence).to_contain_text(judged)
    # The keyboard goes on where it was.
    expect(page.get_by_role("button", name="go on with lesson 1")).to_be_focused()
    at_rest(page)
    assert told(page, numbers)
    page.goto(server)
    expect(sentence).to_contain_text("Step 1 of 12")
    expect(ways).to_have_count(0)


def test_rows_that_have_not_happened_are_no_places(page: Page, server: str) -> None:
    """Before the answer there is no map to point at; then nothing is marked, pinned or told of a row that is to come."""
    page.context.clear_cookies()
    open_bare(page, server)
    sentence, marked = page.locator("[data-part=sentence]"), page.locator("[data-part] .token:is(.lit, .pinned)")
    expect(sentence).to_contain_text("Before you look")
    at_rest(page)
    expect(page.locator(FOCUS)).to_be_hidden()
    assert not marked.count() and not page.locator("[data-part=source] .attended").count()
    expect(sentence).to_contain_text("Before you look")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(sentence).to_contain_text("Step 1 of 12")
    at_rest(page)
    page.mouse.click(*cell(page, 4, 11))
    assert not marked.count()
    page.mouse.click(*cell(page, 0, 11))
    expect(sentence).to_contain_text("Pinned: row 1·<start>→s, key 12·s")


def test_a_letter_of_the_word_answers_as_its_button_does_and_the_player_stays(page: Page, server: str) -> None:
    page.context.clear_cookies()
    open_bare(page, server)
    play = page.get_by_role("button", name="Play", exact=True)
    before = play.bounding_box()
    page.locator("[data-part=source] .token").last.click()  # `<end>` is no answer
    expect(page.locator("[data-part=sentence]")).to_contain_text("Before you look")
    page.locator("[data-part=source] .token", has_text="s").last.click()
    expect(page.locator("[data-part=sentence]")).to_contain_text("Right. Step 1 of 12")
    at_rest(page)
    after = play.bounding_box()
    assert before and after and abs(before["x"] - after["x"]) < 1 and abs(before["y"] - after["y"]) < 8
    assert not page.locator(".token.pinned").count()


@pytest.mark.slow
@pytest.mark.parametrize("away", ["text", "Play", "ArrowRight"])
def test_whoever_does_something_else_is_not_asked_again(page: Page, server: str, away: str) -> None:
    page.context.clear_cookies()
    open_bare(page, server)
    sentence, box = page.locator("[data-part=sentence]"), page.get_by_role("textbox", name="Source text")
    expect(sentence).to_contain_text("Before you look")
    if away == "text":
        box.fill("planet")
        box.press("Enter")
    elif away == "ArrowRight":
        page.keyboard.press(away)
    else:
        page.get_by_role("button", name=away).click()
    expect(sentence).to_contain_text({"Play": "Step 12 of 12", "ArrowRight": "Step 2 of 12", "text": "of 7"}[away])
    expect(sentence).to_contain_text("the model writes")
    at_rest(page)
    page.goto(server)
    wait_until_drawn(page)
    expect(sentence).to_contain_text("Step 1 of 12")


@pytest.mark.slow
def test_it_opens_at_a_head_whose_weights_look_like_weights(page: Page, server: str) -> None:
    open_bare(page, server)
    page.get_by_role("button", name="Last step").click()
    wait_for_step(page, 11)
    weights = drawn(page)
    assert [int(key) for key in np.nanargmax(weights[:11], axis=1)] == [*range(11, 0, -1)]
    in_between = (weights > 0.1) & (weights < 0.9)
    assert in_between.any(axis=1).sum() > 6


@pytest.mark.slow
def test_all_is_there_at_once_where_a_link_says_something(page: Page, server: str) -> None:
    page.goto(f"{server}/?step=1")
    wait_for_step(page, 0)
    wait_until_drawn(page, CROSS)
    assert page.locator(OUTPUT).all_text_contents() == [*"sihtesrever", "<end>"]
    assert page.locator(CROSS).evaluate("(chart) => chart.querySelector('.later').getAttribute('d')") == ""


@pytest.mark.slow
def test_after_the_last_step_there_is_somewhere_to_go(page: Page, server: str) -> None:
    open_bare(page, server)
    page.get_by_role("button", name="Last step").click()
    wait_for_step(page, 11)
    expect(page.locator("[data-part=answer]")).to_contain_text("right")
    at_rest(page)
    page.get_by_role("button", name="your own word").click()
    expect(page.get_by_role("textbox", name="Source text")).to_be_focused()
    _, layer, head = head_of(page)
    attention = tv.decode(tv.load_checkpoint("reverse"), "reversethis").cross
    layer, head = farthest_head(attention, layer, head)
    page.get_by_role("button", name="another head").click()
    wait_for_head(page, "cross", layer, head)
    at_rest(page)
    inside = page.get_by_role("tab", name="Inside")
    page.get_by_role("tab", name="Masks").click()
    expect(inside).to_have_attribute("aria-selected", "false")
    at_rest(page)
    page.set_viewport_size({"width": 1280, "height": 720})
    page.evaluate("document.querySelector('.stMain').scrollTo(0, 0)")
    expect(inside).not_to_be_in_viewport()
    page.get_by_role("button", name="why there?").click()
    expect(inside).to_have_attribute("aria-selected", "true")
    expect(inside).to_be_in_viewport()
    reason = page.locator(".inside .reason")
    expect(reason).to_be_in_viewport()
    # Of the step that is shown, which stays.
    row = attention.head(layer, head)[11]
    best, second = np.argsort(-row)[:2]
    expect(reason).to_contain_text(f"Query 12·r fits key {best + 1}·")
    expect(reason).to_contain_text(f"next is {second + 1}·")
    expect(page.locator("[data-part=sentence]")).to_contain_text("Step 12 of 12")
    assert page.locator(OUTPUT).all_text_contents() == [*"sihtesrever", "<end>"]


@pytest.mark.slow
def test_playing_moves_no_button_and_ends_at_the_last_step(page: Page, server: str) -> None:
    open_bare(page, server)
    expect(page.get_by_role("combobox", name="Speed")).to_be_hidden()

    def boxes() -> list[object]:
        return [button.bounding_box() for button in page.locator(".controls button").all() if button.is_visible()]

    before = boxes()
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    assert boxes()[:5] == before[:5]
    wait_for_step(page, 11)
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()


@pytest.mark.slow
def test_the_list_of_models_says_what_each_one_does_and_the_link_has_its_name_alone(page: Page, server: str) -> None:
    open_bare(page, server)
    box = page.get_by_role("combobox", name="Checkpoint")
    expect(box).to_have_value("reverse")
    box.press("ArrowDown")
    for name in ("german", "reverse-small"):
        expect(
            page.get_by_role("option", name=re.compile(f"^{name} .*{tasks.about(name.partition('-')[0])}; "))
        ).to_be_visible()
    # What is typed looks for names; each keeps its own words.
    box.press_sequentially("german")
    only = page.get_by_role("option")
    expect(only).to_have_count(1)
    expect(only).to_have_accessible_name(re.compile("^german translates German"))
    box.press("Enter")
    wait_for_link(page, checkpoint="german")
    expect(box).to_have_value("german")
