"""What is pointed at or pinned is marked wherever it is, in the browser alone; and attention as lines."""

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from tests.browser.charts import (
    FOCUS,
    TEXTS,
    area,
    at_rest,
    bring_into_view,
    choose_kind,
    link_of,
    small,
    wait_for_step,
    wait_until_drawn,
)
from tests.needs import slow
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace

pytestmark = pytest.mark.browser

SOURCE, OUTPUT = "[data-part=source] .token", "[data-part=output] .token"
BANDS = """(name) => {
  const all = (path) => [...(path?.getAttribute('d') ?? '').matchAll(/M(.*?) (.*?)h(.*?)v(.*?)h/g)];
  const boxes = (path) => all(path).map((box) => box.slice(1).map(Number));
  return Object.fromEntries([...document.querySelectorAll('.viewer :is([data-part=focus], .mosaics > .chart)')].map((chart) => {
    const { kind, pitch_x } = chart.layout.meta;
    return [pitch_x ? kind : 'focus', boxes(chart.querySelector(`.marks .${name}`))];
  }));
}"""
LINES = ".strips .lines path"


def open_app(page: Page, server: str, query: str = "") -> None:
    page.goto(f"{server}/?text=hello&layer=1&head=2&all_controls=true{query}")
    wait_until_drawn(page)
    at_rest(page)


def bands(page: Page, name: str = "pointed") -> dict[str, list[list[float]]]:
    """By chart, the rectangles over it: left, top, width, height."""
    return page.evaluate(BANDS, name)


def point_at_cell(page: Page, query: int, key: int, rows: int = 6, columns: int = 7) -> None:
    box = area(page)
    page.mouse.move(box["x"] + box["width"] * (key + 0.5) / columns, box["y"] + box["height"] * (query + 0.5) / rows)


def marked(page: Page, tokens: str, name: str) -> list[int]:
    return page.locator(tokens).evaluate_all(f"(all) => all.flatMap((one, i) => one.matches('.{name}') ? [i] : [])")


@pytest.fixture(scope="module")
def hello() -> Trace:
    trace = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "hello")
    assert isinstance(trace, Trace)
    return trace


@pytest.mark.slow
def test_a_new_run_is_said_with_its_words_and_with_its_large_map_and_not_with_every_chart(page: Page, server: str) -> None:
    open_app(page, server)
    point_at_cell(page, 2, 5)
    assert bands(page)["cross"]
    page.locator("[data-part=sentence]").evaluate(
        """(sentence) => {
          window.said = 0;
          new MutationObserver(() => { window.said += 1; }).observe(sentence, { childList: true });
        }"""
    )
    page.get_by_label("Source text").fill("world")
    page.get_by_label("Source text").press("Enter")
    expect(page.locator(SOURCE).nth(1)).to_have_text("w")
    wait_until_drawn(page)
    assert 1 <= at_rest(page, "() => window.said") <= 2
    # Nor are the marks of the run before left on the small maps of this one.
    assert not any(bands(page).values())


def test_what_is_pointed_at_is_marked_everywhere_without_a_word_to_the_server(page: Page, server: str) -> None:
    sent: list[str | bytes] = []

    def note(message: str | bytes) -> None:
        sent.append(message)

    page.once("websocket", lambda socket: socket.on("framesent", note))
    open_app(page, server)
    before = len(sent)
    assert before
    page.locator(SOURCE).nth(3).hover()
    assert marked(page, SOURCE, "lit") == [3]
    over = bands(page)
    # One column of the large map, below which its label stands; one of each tile of those that read the source.
    assert {kind: len(boxes) for kind, boxes in over.items()} == {"focus": 1, "encoder": 8, "decoder": 0, "cross": 8}
    (left, _, width, _), label = over["focus"][0], page.evaluate(TEXTS, [FOCUS, "xtick"])[3]["box"]
    assert abs(left + width / 2 - (label[0] + label[2] / 2)) < 2
    # A row, and the candidate that was written at this step.
    page.locator(OUTPUT).nth(4).hover()
    assert {kind: len(boxes) for kind, boxes in bands(page).items()} == {"focus": 2, "encoder": 0, "decoder": 8, "cross": 8}
    point_at_cell(page, 2, 5)
    assert (marked(page, SOURCE, "lit"), marked(page, OUTPUT, "lit")) == ([5], [2])
    assert len(bands(page)["cross"]) == 16
    bring_into_view(page.locator(small("cross")))
    tile = area(page, small("cross"))
    # The lower right tile's last row and column: of 7 columns and 6 rows.
    page.mouse.move(tile["x"] + tile["width"] - 3, tile["y"] + tile["height"] - 3)
    assert (marked(page, SOURCE, "lit"), marked(page, OUTPUT, "lit")) == ([6], [5])
    page.mouse.move(5, 5)
    assert not any(bands(page).values())
    assert len(sent) == before


@pytest.mark.slow
def test_a_pin_is_said_and_travels_in_the_link(page: Page, server: str, another: Page, hello: Trace) -> None:
    open_app(page, server)
    point_at_cell(page, 2, 5)
    page.mouse.down()
    page.mouse.up()
    weight = hello.cross.weights[0, 1, 2, 5]
    said = f"Pinned: row 3·l→l, key 6·o: {weight:.2f}" if weight >= 0.005 else "Pinned: row 3·l→l, key 6·o: < 0.01"
    expect(page.locator("[data-part=sentence]")).to_contain_text(said)
    page.wait_for_function("location.search.includes('pin=3%2C6')")
    another.goto(link_of(page))
    expect(another.locator("[data-part=sentence]")).to_contain_text(said)
    assert (marked(another, SOURCE, "pinned"), marked(another, OUTPUT, "pinned")) == ([5], [2])
    # Another kind has other rows and columns.
    choose_kind(another, "encoder self-attention")
    expect(another.locator("[data-part=sentence]")).not_to_contain_text("Pinned")
    another.wait_for_function("!location.search.includes('pin=')")


@pytest.mark.slow
def test_the_keyboard_points_pins_and_lets_go(page: Page, server: str) -> None:
    open_app(page, server)
    page.locator(SOURCE).first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert marked(page, SOURCE, "lit") == [2]
    assert len(bands(page)["cross"]) == 8
    page.keyboard.press("Enter")
    page.wait_for_function("location.search.includes('pin=%2C3')")
    expect(page.locator("[data-part=sentence]")).to_contain_text("Pinned: key 3·e")
    assert not page.locator(OUTPUT).nth(1).evaluate("(token) => token.matches('.now')")
    # A written token is a step as well.
    page.locator(OUTPUT).nth(1).focus()
    page.keyboard.press("Enter")
    wait_for_step(page, 1)
    page.wait_for_function("location.search.includes('pin=2&') || location.search.endsWith('pin=2')")
    page.keyboard.press("Escape")
    page.wait_for_function("!location.search.includes('pin=')")
    assert not any(bands(page, "pinned").values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cross", slow("decoder"), slow("encoder")])
def test_lines_are_as_wide_as_the_weights_of_the_row(page: Page, server: str, hello: Trace, kind: Kind) -> None:
    open_app(page, server, f"&kind={kind}&step=3&lines=step")
    row, weights = 3, hello.attentions[kind].weights
    if kind == "encoder":
        # Nothing steps here: before a hand is on it, each token is tied to the one it looks at most.
        keys = page.locator(LINES).evaluate_all("(all) => all.map((one) => +one.dataset.key)")
        assert keys == weights[0, 1].argmax(-1).tolist()
        point_at_cell(page, row, 1, rows=7)
    else:
        page.keyboard.press("ArrowRight")
        wait_for_step(page, row)
    lines = page.locator(LINES).evaluate_all(
        "(all) => all.map((one) => [+one.dataset.key, one.getAttribute('stroke-width') / 10])"
    )
    wanted = [(key, weight) for key, weight in enumerate(weights[0, 1, row]) if weight > 0]
    np.testing.assert_allclose(lines, wanted, atol=1e-6)
    box = page.get_by_role("combobox", name="Lines")
    expect(box).to_have_value("step")
    if kind == "cross":
        box.select_option("none")
        page.wait_for_function("location.search.includes('lines=none')")
        assert page.locator(LINES).count() == 0


@pytest.mark.slow
def test_words_of_two_languages_are_linked_from_the_start_and_the_map_still_fits(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    for model, text, lines in (("german", "gestern habe ich den alten Film gesehen", 9), ("reverse", "hello", 7)):
        page.goto(f"{server}/?checkpoint={model}&text={text}&step=3")
        expect(page.locator(f"{FOCUS} .main-svg").first).to_be_visible()
        expect(page.locator(LINES)).to_have_count(lines)
        # Down to the tokens that are looked at, which stand below it.
        top = page.locator(FOCUS).evaluate("(chart) => chart.getBoundingClientRect().top")
        assert (
            top + max(y + height for _, y, _, height in (text["box"] for text in page.evaluate(TEXTS, [FOCUS, "xtick"]))) <= 720
        )


@pytest.mark.slow
def test_lines_move_with_the_steps_unless_motion_is_not_wanted(page: Page, server: str) -> None:
    open_app(page, server, "&step=2&lines=step")
    for wanted, duration in (("no-preference", "0.16s"), ("reduce", "0.001s")):
        page.emulate_media(reduced_motion=wanted)
        # In one go: once the step has rested, nothing moves any more.
        found = page.locator(LINES).first.evaluate(
            """(line) => {
              const root = line.getRootNode();
              document.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
              return getComputedStyle(root.querySelector('.lines path')).transitionDuration;
            }"""
        )
        assert found.startswith(duration)


@pytest.mark.slow
def test_the_head_that_aligns_draws_a_crossing_and_is_asked_by_a_pin(page: Page, server: str, hello: Trace) -> None:
    """The large map shows another head, which says nothing of words then."""
    open_app(page, server, "&lines=all&aligner=2.1&step=4")
    weights = hello.cross.weights[1, 0]
    best = weights.argmax(-1)
    ends = """(all) => all.map((line) => [0, line.getTotalLength()].map((at) => line.getPointAtLength(at).x
      + line.ownerSVGElement.getBoundingClientRect().left))"""
    centres = "(all) => all.map((cell) => cell.getBoundingClientRect()).map((box) => box.left + box.width / 2)"
    source, output = (page.locator(tokens).evaluate_all(centres) for tokens in (SOURCE, OUTPUT))
    np.testing.assert_allclose(page.locator(LINES).evaluate_all(ends), [(output[t], source[best[t]]) for t in range(4)], atol=1)
    wide = page.locator(LINES).evaluate_all("(all) => all.map((line) => line.getAttribute('stroke-width') / 5)")
    np.testing.assert_allclose(wide, [weights[t, best[t]] for t in range(4)], atol=1e-6)
    assert page.locator(LINES + ".aside").count() == 0
    page.locator(OUTPUT).nth(1).click()
    page.mouse.move(5, 5)
    tints = page.locator(SOURCE).evaluate_all("(all) => all.map((cell) => +cell.style.getPropertyValue('--weight'))")
    # As much as an eye can tell.
    np.testing.assert_allclose(tints, weights[1], atol=0.005)
    expect(page.locator("[data-part=sentence]")).to_contain_text("Pinned: l ← l > 0.99, says L2 H1")
    page.locator(SOURCE).nth(best[0]).click()
    expect(page.locator("[data-part=sentence]")).to_contain_text("Pinned: o → o > 0.99, says L2 H1")
