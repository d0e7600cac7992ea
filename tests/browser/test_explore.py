"""The main job, in a real browser: type, step, choose, pin, share the link. The shipped checkpoints are used."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from benchmarks import served
from tests.browser.charts import (
    FOCUS,
    TEXTS,
    at_rest,
    choose,
    choose_kind,
    click_point,
    click_tile,
    head_of,
    link_of,
    small,
    step_of,
    texts,
    wait_for_head,
    wait_for_link,
    wait_for_step,
    wait_for_weights,
    wait_until_drawn,
)
from tests.needs import slow
from transformer_viz.terms import KIND_TITLES, place_label, row_labels
from transformer_viz.viewer import plotly_js

pytestmark = pytest.mark.browser


def open_app(page: Page, server: str, query: str = "?text=reversethis") -> None:
    page.goto(f"{server}/{query}")
    wait_until_drawn(page)
    at_rest(page)


def enter(page: Page, text: str) -> None:
    """Types and waits until the picture is of these words."""
    box = page.get_by_label("Source text")
    box.fill(text)
    box.press("Enter")
    expect(page.locator("[data-part=source] .token")).to_have_text(["<start>", *text.replace(" ", "␣"), "<end>"])
    wait_until_drawn(page)


def expect_sentence(page: Page, words: str) -> None:
    expect(page.locator("[data-part=sentence]")).to_contain_text(words)


def expect_output(page: Page, tokens: Iterable[str]) -> None:
    expect(page.locator("[data-part=output] button")).to_have_text([*tokens])


@pytest.fixture(scope="module")
def checkpoint() -> tv.Checkpoint:
    return tv.load_checkpoint("reverse", device="cpu")


# ---- journeys


def test_type_step_choose_pin_and_share(page: Page, another: Page, server: str, checkpoint: tv.Checkpoint) -> None:
    open_app(page, server)
    enter(page, "Mississippi 2026!")
    trace = tv.decode(checkpoint, "Mississippi 2026!")
    # It begins at its first step.
    page.keyboard.press("Escape")
    page.keyboard.press("End")
    expect_output(page, [*"!6202␣ippississiM", "<end>"])
    page.locator("[data-part=output] button").nth(7).click()
    expect_sentence(page, "Step 8 of 18")
    click_tile(page, small("decoder"), 1, 2)
    wait_for_head(page, "decoder", 1, 2)
    wait_for_step(page, 7)
    at_rest(page)
    click_point(page, FOCUS, 3, 6)
    row, key = row_labels(trace.decoder.queries, trace.output_tokens)[6], place_label(3, trace.decoder.keys[3])
    so_far = np.where(trace.decoder.mask, np.nan, trace.decoder.weights[1, 2])
    so_far[8:] = np.nan
    wait_for_link(page, text="Mississippi 2026!", kind="decoder self-attention", layer="layer 2", step="8", pin="7,4")
    link = link_of(page)
    another.goto(link)
    for each in (page, another):
        wait_for_head(each, "decoder", 1, 2)
        wait_for_step(each, 7)
        wait_for_weights(each, so_far, 1e-5)
        # Where it was typed it unfolds; the link shows all.
        expect_output(each, [*"!6202␣ip", *[""] * 10] if each is page else [*"!6202␣ippississiM", "<end>"])
        expect_sentence(each, "layer 2 head 3")
        expect(each.locator(".said-of-pin")).to_contain_text(re.compile(rf"Pinned: row {row}, key {key}: .*\d"))
    assert sorted(link_of(another).partition("?")[2].split("&")) == sorted(link.partition("?")[2].split("&"))


def test_every_number_is_the_run_s(page: Page, server: str, checkpoint: tv.Checkpoint) -> None:
    """More than 40 cells of each kind, of heads, their mean and their maximum, masked ones blank; and by value."""
    trace = tv.decode(checkpoint, "abcdef")
    open_app(page, server, "?text=abcdef&step=7&all_controls=true")
    by_value = {kind: tv.attribute(checkpoint, trace, "value_weighted", kind=kind).values for kind in ("cross", "decoder")}
    for kind, title in KIND_TITLES.items():
        attention = trace.attentions[kind]
        assert attention.weights[0, 0].size > 40
        choose_kind(page, title)
        for layer, head in ((0, 1), (1, "mean"), (1, "max")):
            choose(page, "Layer", f"layer {layer + 1}")
            choose(page, "Head", f"{head} of heads" if isinstance(head, str) else f"head {head + 1}")
            wait_for_head(page, kind, layer, head)
            wanted = np.where(attention.head_reasons(layer, head) > 0, np.nan, attention.head(layer, head))
            wait_for_weights(page, wanted, 1e-6)
        if kind not in by_value:
            continue
        choose(page, "Head", "head 4")
        measure = page.get_by_role("group", name="What the maps show")
        measure.get_by_role("button", name="by value").click()
        wait_for_weights(page, np.where(attention.head_reasons(1, 3) > 0, np.nan, by_value[kind][1, 3]), 1e-4)
        measure.get_by_role("button", name="weights").click()


def test_the_keyboard_alone(page: Page, server: str, checkpoint: tv.Checkpoint) -> None:
    """Steps, gives its keys to the box that has the focus, takes them back with Escape, pins, and leaves rows to come blank."""
    open_app(page, server)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert step_of(page) == 3, "a step is there before anything else is asked of the page"
    _, layer, head = head_of(page)
    so_far = tv.decode(checkpoint, "reversethis").cross.weights[layer, int(head)].copy()
    so_far[4:] = np.nan
    wait_for_weights(page, so_far, 1e-5)
    expect_sentence(page, "Step 4 of 12: having written sih")
    expect(page).to_have_url(re.compile(r"[?&]step=4\b"))
    box = page.get_by_label("Source text")
    box.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Home")
    assert step_of(page) == 3
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowLeft")
    assert step_of(page) == 2
    page.locator("[data-part=source] .token").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".said-of-pin")).to_contain_text("Pinned: key 3·e")
    page.wait_for_function("location.search.includes('pin=%2C3')")
    page.keyboard.press("Escape")
    expect(page.locator(".said-of-pin")).to_have_count(0)
    assert step_of(page) == 2


def test_a_link_opens_the_same_view_and_says_what_is_impossible_in_it(page: Page, server: str) -> None:
    open_app(page, server, "?text=level%20up%21&kind=encoder&layer=9&head=mean&step=3")
    expect(page.get_by_text("Not possible here, and left out of the link: layer=9")).to_be_visible()
    wait_for_head(page, "encoder", 0, "mean")
    expect_sentence(page, "Step 3 of 10: having written !p")
    expect_output(page, [*"!pu␣level", "<end>"])


def test_what_is_typed_shows_literally(page: Page, server: str) -> None:
    open_app(page, server)
    for text in ("<b>bold</b>", "$x^2$ **a** :red[b]", "<img src=x onerror=alert(1)>", "   "):
        enter(page, text)
        at_rest(page)
        assert page.locator("[data-part=source] b, [data-part=source] img, .katex").count() == 0
        ticks = texts(page, "xtick")
        assert ticks[1:-1] == [f"{n}·{letter.replace(' ', '␣')}" for n, letter in enumerate(text, start=2)]


@pytest.fixture
def quiet_server() -> Iterator[str]:
    """A server of few visits: with many it waits for Enter."""
    with served.server() as running:
        yield running.url


def test_what_is_typed_is_followed_and_what_is_left_half_typed_stays_so(page: Page, quiet_server: str) -> None:
    open_app(page, quiet_server, "?text=ab")
    box, source = page.get_by_label("Source text"), page.locator("[data-part=source] .token")
    box.press("End")
    page.keyboard.type("ba")
    expect(source).to_have_text(["<start>", *"abba", "<end>"])
    wait_for_link(page, text="abba")
    expect(box).to_be_focused()
    page.keyboard.type("b")
    expect(source).to_have_text(["<start>", *"abbab", "<end>"])
    expect(box).to_have_value("abbab")
    box.evaluate("""(box) => {
      box.value = 'other';
      box.dispatchEvent(new InputEvent('input'));
      box.blur();
    }""")
    page.keyboard.press("ArrowRight")
    wait_for_step(page, 1)
    at_rest(page)
    expect(source).to_have_text(["<start>", *"abbab", "<end>"])
    expect(box).to_have_value("other")


def test_enter_on_a_text_that_was_followed_leaves_its_step_in_the_address(page: Page, quiet_server: str) -> None:
    open_app(page, quiet_server, "?text=ab&all_controls=true")
    box = page.get_by_label("Source text")
    box.press("End")
    page.keyboard.type("ba")
    # What is pressed before the answer is there is of the run before.
    expect(page.locator("[data-part=source] .token")).to_have_text(["<start>", *"abba", "<end>"])
    page.locator("[data-part=output] button").nth(1).click()
    wait_for_link(page, text="abba", step="2")
    at_rest(page)
    # In one turn, before the server answers: somebody who leaves now comes back to this address.
    address = box.evaluate("""(box) => {
      box.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
      dispatchEvent(new PointerEvent('pointerdown'));
      return location.search;
    }""")
    assert "step=2" in address


@pytest.mark.slow
def test_the_first_screen_shows_a_decoded_word_and_its_candidates(page: Page, server: str, checkpoint: tv.Checkpoint) -> None:
    open_app(page, server)
    expect_output(page, [*"sihtesrever", "<end>"])
    expect_sentence(page, "the model writes r")
    # What has less than a thousandth says nothing.
    candidates = [each for each in tv.decode(checkpoint, "reversethis").steps[10].candidates[:6] if each[1] >= 1e-3]
    bars = page.evaluate(f"document.querySelector('{FOCUS}').data.find(t => t.type === 'bar').customdata.map(c => c[0])")
    assert bars == [token.replace("<", "&lt;").replace(">", "&gt;") for token, _ in candidates]


@pytest.mark.slow
def test_plotly_is_asked_for_ahead_of_the_charts_that_need_it_and_loaded_once(page: Page, server: str) -> None:
    open_app(page, server)
    page.wait_for_function("window.Plotly")
    page.get_by_role("tab", name="Heads").click()
    wait_until_drawn(page, "[role=tabpanel] .js-plotly-plot")
    entries = "performance.getEntriesByType('resource').filter((one) => one.name.includes('lotly'))"
    fetched = page.evaluate(f"{entries}.map((one) => [one.name, one.transferSize])")
    assert {url for url, _ in fetched} == {f"{server}/{plotly_js.name()}"}
    assert sum(n_bytes > 1_000_000 for _, n_bytes in fetched) <= 1


@pytest.mark.slow
def test_a_table_of_the_page_has_its_own_keys(page: Page, server: str) -> None:
    open_app(page, server, "?text=reversethis&all_controls=true")
    before = step_of(page)
    page.get_by_role("combobox", name="Layer").focus()
    page.keyboard.press("Home")
    assert step_of(page) == before
    page.get_by_role("tab", name="Heads").click()
    page.get_by_test_id("stDataFrame").filter(visible=True).click(position={"x": 60, "y": 50})
    page.wait_for_function("document.activeElement.matches('[role=gridcell]')")
    page.keyboard.press("ArrowLeft")
    assert step_of(page) == before


@pytest.mark.slow
def test_one_press_of_back_leaves_the_page(page: Page, server: str) -> None:
    """Each page writes its link several times: as it opens, and with every step that rests."""
    open_app(page, server)
    for step in (2, 5):
        page.locator("[data-part=output] button").nth(step).click()
        page.wait_for_function("(step) => location.search.includes(`step=${step}`)", arg=step + 1)
    page.get_by_role("link", name="Masks").click()
    box = page.get_by_role("textbox", name="Source strings, one a line")
    expect(box).to_be_visible()
    at_rest(page)
    box.fill("ab")
    box.press("ControlOrMeta+Enter")
    page.wait_for_function("location.search.includes('sources=ab')")
    # The address has the text before the server hears of it, and Streamlit forgets Back where a box speaks in the same moment.
    at_rest(page)
    page.go_back()
    expect(box).to_have_count(0)
    wait_until_drawn(page)
    assert page.evaluate("location.pathname") == "/"


@pytest.mark.slow
def test_bad_input_is_said_and_kept(page: Page, server: str) -> None:
    open_app(page, server)
    box = page.get_by_label("Source text")
    for text, said in {
        "": "The text is empty",
        "ab😀": "GRINNING FACE",
        "x" * 40: "40 characters",
        "e\u0301": "COMBINING ACUTE ACCENT",
        "שלום": "HEBREW LETTER SHIN",
    }.items():
        box.fill(text)
        box.press("Enter")
        expect(page.locator("[role=alert], [role=status]").filter(has_text=said)).to_be_visible()
        assert box.input_value() == text
        expect(page.get_by_text("Traceback")).to_have_count(0)


@pytest.mark.slow
def test_playing_goes_to_the_end(page: Page, server: str) -> None:
    open_app(page, server, "?text=abc&step=1")
    page.get_by_role("button", name="Play").click()
    wait_for_step(page, 3)
    expect(page.get_by_role("button", name="Play")).to_be_visible()


@pytest.mark.slow
def test_another_kind_moves_nothing(page: Page, server: str) -> None:
    # The encoder reads one token more than is written, and the map of fourteen rows is higher.
    open_app(page, server, "?text=epbvqygfqcwgd&kind=cross&step=4")
    page.keyboard.press("Escape")
    tops = """() => ['brief', 'sentence', 'play', 'maps', 'mosaics'].map((part) => {
      const { top } = document.querySelector(`.viewer [data-part=${part}]`).getBoundingClientRect();
      return [part, top + window.scrollY];
    }).concat([...document.querySelectorAll('.viewer [data-box=kind] button')].map((button) => {
      const { left, width } = button.getBoundingClientRect();
      return [button.textContent, left, width];
    }))"""
    places = {}
    for kind in ("cross", "encoder", "decoder"):
        choose_kind(page, KIND_TITLES[kind])
        wait_until_drawn(page)
        at_rest(page)
        places[kind] = page.evaluate(tops)
    assert places["encoder"] == places["cross"] == places["decoder"]
    choose_kind(page, KIND_TITLES["encoder"])
    expect(page.locator("[data-part=brief]")).to_have_text("The encoder read the whole source first; now the model writes c.")


def test_two_people_do_not_meet(page: Page, another: Page, server: str) -> None:
    """What one session types is never seen by another."""
    open_app(page, server)
    open_app(another, server)
    enter(page, "mine only")
    enter(another, "yours")
    for each in (page, another):
        each.keyboard.press("Escape")
        each.keyboard.press("End")
    expect_output(page, [*"ylno␣enim", "<end>"])
    expect_output(another, [*"sruoy", "<end>"])


@pytest.mark.slow
def test_a_phone_has_the_candidates_below_the_map(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    open_app(page, server)
    page.wait_for_function(f"document.querySelector('{FOCUS}').layout.xaxis.domain[1] === 1")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


# ---- the first visit


@pytest.mark.slow
def test_the_bare_address_opens_at_the_first_step_and_offers_to_play(page: Page, server: str) -> None:
    open_app(page, server, "")
    assert step_of(page) == 0
    expect(page.get_by_text("parts that each look in their own way")).to_be_visible()
    expect_sentence(page, "Step 1 of 12")
    play = page.get_by_role("button", name="Play")
    size = play.bounding_box()
    assert size is not None and size["width"] > 100
    play.click()
    wait_for_step(page, 1)
    # A link of the last letter is not the bare address.
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile(r"[?&]step=11\b"))


LONG = "ich weiß, dass die alte Frau gestern das Buch gelesen hat"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "query"),
    [
        ((1280, 720), "text=reversethis&step=6"),
        slow((1280, 720), f"checkpoint=german&text={LONG}&step=10&lines=all"),
        slow((1440, 900), "text=incomprehensibility&step=19"),
    ],
)
def test_a_projector_has_one_row_and_the_stage_on_one_screen(
    page: Page, server: str, size: tuple[int, int], query: str
) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(f"{server}/?{query}&projector=true")
    wait_until_drawn(page)
    at_rest(page)
    # Rows and candidates; the tokens of the columns stand above the map, too.
    drawn = page.evaluate(TEXTS, [FOCUS, "(y|x2)tick"])
    box: Any = page.locator(FOCUS).bounding_box()
    assert page.evaluate("scrollY") == 0
    assert box["y"] + max(top + height for _, top, _, height in (text["box"] for text in drawn)) < size[1]
    brief = page.locator("[data-part=brief]")
    expect(brief).to_contain_text("looks at")
    row: list[Any] = [page.get_by_role("button", name=name, exact=True).bounding_box() for name in ("Step back", "Step on")]
    said: Any = brief.bounding_box()
    assert all(one["y"] < said["y"] + said["height"] / 2 < one["y"] + one["height"] for one in row)
    # Nothing else can be pressed but tokens and what is below the map.
    buttons = page.locator("button:visible:not(.token, .kinds *, .numbers-switch), select:visible")
    above = (
        "(all, y) => all.filter((one) => one.getBoundingClientRect().bottom > 0 && one.getBoundingClientRect().top < y).length"
    )
    assert buttons.evaluate_all(above, box["y"]) == 2
    assert page.locator(".lines path").count() > 0
    read = page.locator(".token:visible")
    assert min(read.evaluate_all("(all) => all.map((one) => parseFloat(getComputedStyle(one).fontSize))")) >= 17, (
        "for the last row"
    )
    # The settings come down for the pointer, and for the keyboard.
    settings = page.get_by_role("button", name="Settings")
    expect(settings).not_to_be_in_viewport()
    page.mouse.move(size[0] / 2, 2)
    expect(settings).to_be_in_viewport(ratio=1)


@pytest.mark.slow
def test_a_clicker_steps_and_does_no_harm(page: Page, server: str) -> None:
    page.goto(f"{server}/?text=hello&projector=true&step=2")
    wait_for_step(page, 1)
    page.evaluate("window.isSame = true")
    for key, step in {"PageDown": 2, "PageUp": 1, ".": 1, "F5": 1, "b": 1}.items():
        page.keyboard.press(key)
        wait_for_step(page, step)
    assert page.evaluate("window.isSame")
    assert page.evaluate("document.querySelector('.stMain').scrollTop") == 0
