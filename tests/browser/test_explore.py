"""The main job, in a real browser: type, step, click a tile, share the link. The shipped checkpoints are used."""

import contextlib
import re
from collections.abc import Callable, Generator, Iterable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

import transformer_viz as tv
from tests.browser.charts import (
    FOCUS,
    HAS_WORDS,
    TEXTS,
    at_rest,
    texts,
    wait_for_head,
    wait_for_link,
    wait_for_step,
    wait_for_weights,
    wait_until_drawn,
)
from tests.needs import slow
from tests.until import until
from transformer_viz.views.components import plotly_js

pytestmark = pytest.mark.browser

READY = """([chart, text]) => {
  const typed = document.querySelector('input[aria-label="Source text"]');
  const mosaics = [...document.querySelectorAll('[class*="st-key-mosaic-"] .chart')];
  return typed?.value === text && document.querySelector(chart)?.__step !== undefined
    && mosaics.length === 3 && mosaics.every((mosaic) => mosaic.__drawn) && HAS_WORDS();
}""".replace("HAS_WORDS", HAS_WORDS)


def open_app(page: Page, server: str, query: str = "?text=reversethis", text: str = "reversethis") -> None:
    page.goto(f"{server}/{query}")
    page.wait_for_function(READY, arg=[FOCUS, text])


def enter(page: Page, text: str) -> None:
    before = run_of(page)
    box = page.get_by_label("Source text")
    box.fill(text)
    box.press("Enter")
    page.wait_for_function(
        """([chart, before]) => {
          const drawn = document.querySelector(chart)?.__drawn;
          return drawn && drawn.run !== before;
        }""",
        arg=[FOCUS, before],
    )


def run_of(page: Page) -> str:
    wait_until_drawn(page)
    return page.evaluate(f"document.querySelector('{FOCUS}').__drawn.run")


def step_of(page: Page) -> int:
    return page.evaluate(f"document.querySelector('{FOCUS}').__step")


def expect_sentence(page: Page, words: str) -> None:
    expect(page.locator("[data-part=sentence]")).to_contain_text(words)


def expect_output(page: Page, tokens: Iterable[str]) -> None:
    expect(page.locator("[data-part=output] button")).to_have_text([*tokens])


@pytest.fixture(scope="module")
def checkpoint() -> tv.Checkpoint:
    return tv.load_checkpoint("reverse", device="cpu")


@pytest.mark.slow
def test_the_first_screen_shows_a_decoded_word_and_its_candidates(page: Page, server: str, checkpoint: tv.Checkpoint) -> None:
    open_app(page, server)
    expect_output(page, [*"sihtesrever", "<end>"])
    expect_sentence(page, "the model writes r")
    # Nothing below the fold: what went in, what came out, where it looked, and all heads.
    lowest = page.evaluate(
        "Math.max(...[...document.querySelectorAll('.chart')].slice(0, 4).map(c => c.getBoundingClientRect().bottom))"
    )
    assert lowest <= 900
    candidates = tv.decode(checkpoint, "reversethis").steps[10].candidates[:6]
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
    assert {url for url, _ in fetched} == {f"{server}/{plotly_js.NAME}"}
    assert sum(n_bytes > 1_000_000 for _, n_bytes in fetched) <= 1


def test_what_is_drawn_is_what_the_model_did(page: Page, server: str, checkpoint: tv.Checkpoint) -> None:
    open_app(page, server)
    enter(page, "Mississippi 2026!")
    trace = tv.decode(checkpoint, "Mississippi 2026!")
    expect_output(page, [*"!6202␣ippississiM", "<end>"])
    best = checkpoint.metrics["best_head"]
    page.keyboard.press("Escape")
    page.locator("[data-part=output] button").last.click()
    wait_for_step(page, 17)
    wait_for_weights(page, trace.cross.weights[best["layer"], best["head"]], 1e-5)


def test_the_keyboard_steps_and_rows_to_come_are_blank(page: Page, server: str, checkpoint: tv.Checkpoint) -> None:
    open_app(page, server)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    wait_for_step(page, 3)
    best, weights = checkpoint.metrics["best_head"], tv.decode(checkpoint, "reversethis").cross.weights
    so_far = weights[best["layer"], best["head"]].copy()
    so_far[4:] = np.nan
    wait_for_weights(page, so_far, 1e-5)
    expect_sentence(page, "Step 4 of 12: having written sih")
    expect(page).to_have_url(re.compile(r"[?&]step=4\b"))


@pytest.mark.slow
def test_keys_belong_to_the_control_that_has_the_focus(page: Page, server: str) -> None:
    open_app(page, server, "?text=reversethis&all_controls=true")
    before = step_of(page)

    def keys_are_its_own() -> None:
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Home")
        # A step is taken while its key is pressed, and drawn before anything is asked of the page.
        assert step_of(page) == before

    for box in (page.get_by_label("Source text"), page.get_by_role("combobox", name="Layer")):
        box.focus()
        keys_are_its_own()
    page.get_by_role("tab", name="Heads").click()
    page.get_by_test_id("stDataFrame").filter(visible=True).click(position={"x": 60, "y": 50})
    page.wait_for_function("document.activeElement.matches('[role=gridcell]')")
    keys_are_its_own()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Home")
    assert step_of(page) == 0 != before


@pytest.mark.slow
def test_escape_gives_the_arrows_back_to_the_player(page: Page, server: str) -> None:
    open_app(page, server)
    enter(page, "abcd")
    before = step_of(page)
    page.keyboard.press("ArrowLeft")
    assert step_of(page) == before
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowLeft")
    assert step_of(page) == before - 1
    page.get_by_label("Source text").focus()
    # Plotly keeps a press on a chart to itself, so the browser leaves the focus where it is.
    page.locator(FOCUS).click()
    page.keyboard.press("ArrowLeft")
    wait_for_step(page, before - 2)


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


def test_a_click_on_a_tile_makes_it_the_focus_and_keeps_the_step(page: Page, server: str) -> None:
    open_app(page, server)
    page.locator("[data-part=output] button").nth(7).click()
    tile = page.locator(".st-key-mosaic-decoder .chart")
    box = tile.bounding_box()
    assert box is not None
    # Layer 2, head 3 of 2 x 4: the third column, the lower row.
    tile.click(position={"x": box["width"] * 0.625, "y": box["height"] * 0.8})
    wait_for_head(page, "decoder", 1, 2)
    wait_for_step(page, 7)
    expect(page).to_have_url(re.compile(r"kind=decoder"))
    expect_sentence(page, "layer 2 head 3")
    page.wait_for_function("location.search.includes('step=8')")
    page.reload()
    wait_for_head(page, "decoder", 1, 2)
    wait_for_step(page, 7)
    expect_sentence(page, "Step 8 of 12")


class Between:
    """Between the page and Python: what Python says can be held back, so that what the page says meets it on its way."""

    def __init__(self, page: Page) -> None:
        self.page, self.said, self.is_holding = page, 0, False
        self.held: list[Callable[[], None]] = []
        page.route_web_socket("**/_stcore/stream", self._join)

    def _join(self, socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()
        socket.on_message(lambda message: self._pass_on(server, message))
        server.on_message(lambda message: self._answer(socket, message))

    def _pass_on(self, server: WebSocketRoute, message: str | bytes) -> None:
        self.said += 1
        server.send(message)

    def _answer(self, socket: WebSocketRoute, message: str | bytes) -> None:
        if self.is_holding:
            self.held.append(lambda: socket.send(message))
        else:
            socket.send(message)

    def wait_until_said(self, count: int) -> None:
        """Until the page has said so much since the answers are held back."""
        # What it says is heard while Playwright is asked for something.
        until(lambda: self.page.evaluate("true") and self.said >= count)

    @contextlib.contextmanager
    def answers_held(self) -> Generator[None]:
        self.said, self.is_holding = 0, True
        yield
        # What comes while these are passed on has its place behind them.
        while self.held:
            self.held.pop(0)()
        self.is_holding = False


@pytest.mark.slow
@pytest.mark.parametrize("is_reported_first", [True, False])
def test_a_step_reported_while_a_click_moves_the_focus_does_not_take_it_back(
    new_page: Page, server: str, is_reported_first: bool
) -> None:
    """A report that goes out before the answer to the click says what the boxes said before it; and the other way round."""
    page, between = new_page, Between(new_page)  # a route of a websocket stays for good
    open_app(page, server)
    at_rest(page)
    for head in (0, 2):
        box = page.locator(".st-key-mosaic-decoder .chart").bounding_box()
        assert box is not None
        with between.answers_held():
            page.locator("[data-part=output] button").nth(head + 1).click()
            if is_reported_first:
                between.wait_until_said(1)
            page.mouse.click(box["x"] + box["width"] * (head + 0.5) / 4, box["y"] + box["height"] * 0.8)
            between.wait_until_said(2)
        wait_for_head(page, "decoder", 1, head)
        wait_for_link(page, kind="decoder self-attention", step=str(head + 2))
        said = at_rest(page, "() => new URLSearchParams(location.search).get('head')")
        assert said == (f"head {head + 1}" if head else None), "the first is the default"


def test_a_link_opens_the_same_view_and_says_what_is_impossible_in_it(page: Page, server: str) -> None:
    open_app(page, server, "?text=level%20up%21&kind=encoder&layer=9&head=mean&step=3", text="level up!")
    expect(page.get_by_text("Not possible here, and left out of the link: layer=9")).to_be_visible()
    wait_for_head(page, "encoder", 0, "mean")
    expect_sentence(page, "Step 3 of 10: having written !p")
    expect_output(page, [*"!pu␣level", "<end>"])


def test_what_is_typed_shows_literally(page: Page, server: str) -> None:
    open_app(page, server)
    for text in ("<b>bold</b>", "$x^2$ **a** :red[b]", "<img src=x onerror=alert(1)>", "   "):
        enter(page, text)
        expect(page.locator("[data-part=source] span")).to_have_text(["<start>", *text.replace(" ", "␣"), "<end>"])
        assert page.locator("[data-part=source] b, [data-part=source] img, .katex").count() == 0
        ticks = texts(page, "xtick")
        assert ticks[1:-1] == [f"{n}·{letter.replace(' ', '␣')}" for n, letter in enumerate(text, start=2)]


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
    open_app(page, server, "?text=abc&step=1", text="abc")
    page.get_by_role("button", name="Play").click()
    wait_for_step(page, 3)
    expect(page.get_by_role("button", name="Play")).to_be_visible()


@pytest.mark.slow
def test_two_people_do_not_meet(page: Page, another: Page, server: str) -> None:
    """What one session types is never seen by another."""
    open_app(page, server)
    open_app(another, server)
    enter(page, "mine only")
    enter(another, "yours")
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
    open_app(page, server, "", "reversethis")
    assert step_of(page) == 0
    expect(page.get_by_text("It was never told how")).to_be_visible()
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "text", "step"), [((1280, 720), "reversethis", 6), slow((1440, 900), "incomprehensibility", 19)]
)
def test_a_projector_has_the_whole_map_and_its_controls_on_one_screen(
    page: Page, server: str, size: tuple[int, int], text: str, step: int
) -> None:
    """At the step with the longest sentence."""
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(f"{server}/?text={text}&projector=true&step={step}")
    wait_for_step(page, step - 1)
    at_rest(page)
    box = page.locator(FOCUS).bounding_box()
    drawn = page.evaluate(TEXTS, [FOCUS, "([xy]|x2)(tick|title)"])
    assert box is not None and len(drawn) == 2 * len(text) + 3 + 3 + 3
    assert page.evaluate("scrollY") == 0
    assert box["y"] + max(top + height for _, top, _, height in (text["box"] for text in drawn)) < size[1]
    expect(page.get_by_role("slider", name="Step")).to_be_in_viewport(ratio=1)
    # One row chooses the kind, and stands above the map.
    kinds: list[Any] = [one.bounding_box() for one in page.locator(".st-key-kind").get_by_role("radio").all()]
    assert len({one["y"] for one in kinds}) == 1 and kinds[0]["y"] + kinds[0]["height"] <= box["y"]
    read = page.locator("[data-part=sentence], .token")
    sizes = read.evaluate_all("(all) => all.map((one) => parseFloat(getComputedStyle(one).fontSize))")
    assert min(sizes) >= 17, "for the last row of a room"
    buttons = page.locator(".controls button:visible, .st-key-bar button:visible, .st-key-kind button")
    assert min(buttons.evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().height)")) >= 36
