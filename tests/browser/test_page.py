"""The exported page from disk, without any network: what it draws is what the figures draw, and steps, clicks and keys work."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from tests.browser.charts import click_tile
from tests.browser.drawn import DRAWN, go, same_as_the_figure
from tests.figures.conftest import build
from tests.needs import slow
from tests.sentences import step_sentence
from transformer_viz.export import packed_heads
from transformer_viz.export.strips import answer_mark
from transformer_viz.figures.colour_scale import TITLES, Scale
from transformer_viz.figures.theme import Style
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.trace import Trace

pytestmark = pytest.mark.browser

PLACES: tuple[tuple[Kind, int, Head], ...] = (
    ("encoder", 1, 3),
    ("decoder", 2, 1),
    ("cross", 0, 4),
    ("cross", 2, "mean"),
    ("decoder", 1, "max"),
    ("encoder", 0, "mean"),
)


@pytest.fixture(scope="module")
def edited() -> Trace:
    """Heads that differ in their masks."""
    checkpoint = tv.load_checkpoint("reverse", device="cpu")
    return tv.decode(checkpoint, "edit it", edits=["cross.2.3:4-5,decoder.1.2:off"])


@pytest.mark.parametrize("large", [False, slow(True)])
def test_the_page_draws_what_the_figure_draws(open_page: Callable[..., Page], large: bool) -> None:
    trace = build()
    page = open_page(tv.export.html(trace, large=large))
    for kind, layer, head in PLACES[2:4] if large else PLACES:
        for step in (3, 6):
            go(page, kind, layer, head, step)
            same_as_the_figure(page, trace, kind, layer, head, step, style=Style(large=large))
            said = "".join(text for _, text in step_sentence(trace, kind, layer, head, step))
            assert page.locator("[data-part=sentence]").text_content() == said


@pytest.mark.slow
def test_the_source_token_with_the_most_weight_is_marked(open_page: Callable[..., Page]) -> None:
    """None in a row without weight."""
    weights = build().cross.weights.copy()
    weights[1, 2, 3] = 0
    trace = build(cross=weights)
    page = open_page(tv.export.html(trace))
    heads: tuple[tuple[int, Head], ...] = ((0, 1), (1, 2), (2, "mean"), (1, "max"))
    for layer, head in heads:
        for step in (0, 3):
            go(page, "cross", layer, head, step)
            row = trace.cross.row(layer, head, step)
            cells = page.locator("[data-part=source] .token")
            looked = cells.evaluate_all("(cells) => cells.map((cell) => cell.classList.contains('looked'))")
            assert looked == [bool(row.any()) and place == row.argmax() for place in range(len(row))]


@pytest.mark.slow
def test_dark_and_narrow_are_the_figures_own(open_page: Callable[..., Page]) -> None:
    trace = build()
    page = open_page(tv.export.html(trace, "decoder.3.2", 4), width=390, height=844, scheme="dark")
    page.wait_for_function(DRAWN)
    same_as_the_figure(page, trace, "decoder", 2, 1, 4, style=Style("dark", narrow=True))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Light or dark").click()
    same_as_the_figure(page, trace, "decoder", 2, 1, 4, style=Style(narrow=True))


@pytest.mark.slow
@pytest.mark.parametrize("colours", ["log", "head"])
def test_other_colours_are_the_figures_own(open_page: Callable[..., Page], edited: Trace, colours: Scale) -> None:
    """The head's maximum is of what is not masked; small maps say which colours they have."""
    page = open_page(tv.export.html(edited, colours=colours))
    for kind, layer, head in (("cross", 1, 2), ("decoder", 1, "mean")):
        go(page, kind, layer, head, 5)
        same_as_the_figure(page, edited, kind, layer, head, 5, scale=colours)
    expect(page.locator("[data-part=mosaics] > div").nth(2).locator(".gtitle")).to_have_text(
        f"cross-attention (grey: masked, ★: best head), {TITLES[colours]}"
    )


@pytest.mark.slow
def test_heads_with_masks_of_their_own(open_page: Callable[..., Page], edited: Trace) -> None:
    assert edited.cross.reasons.ndim == 4
    page, mark = open_page(tv.export.html(edited)), answer_mark(edited)
    assert mark is not None
    expect(page.locator("[data-part=answer]")).to_have_text("".join(text for _, text in mark["words"]))
    for kind, layer, head in (("cross", 1, 2), ("cross", 0, 0), ("decoder", 0, 1), ("decoder", 0, "mean"), ("cross", 1, "max")):
        go(page, kind, layer, head, 5)
        same_as_the_figure(page, edited, kind, layer, head, 5)


def test_keys_step_and_a_tile_becomes_the_focus(open_page: Callable[..., Page]) -> None:
    trace = build()
    page = open_page(tv.export.html(trace, "cross.1.1", 1))
    page.wait_for_function(DRAWN)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    same_as_the_figure(page, trace, "cross", 0, 0, 3)
    click_tile(page, "[data-part=mosaics] > div:nth-child(2)", 1, 2)
    same_as_the_figure(page, trace, "decoder", 1, 2, 3)
    assert "layer 2 head 3" in page.locator("[data-part=sentence]").inner_text()
    page.keyboard.press("Home")
    same_as_the_figure(page, trace, "decoder", 1, 2, 0)
    page.wait_for_function("() => location.hash === '#kind=decoder&layer=2&head=3&step=1'")
    page.get_by_label("Head", exact=True).select_option("mean")
    same_as_the_figure(page, trace, "decoder", 1, "mean", 0)
    page.reload()
    page.wait_for_function(DRAWN)
    same_as_the_figure(page, trace, "decoder", 1, "mean", 0)
    page.get_by_role("button", name="Play").click()
    expect(page.locator("[data-part=sentence]")).to_contain_text("Step 2 of 7")


@pytest.mark.slow
def test_runs_from_arrays_with_less_in_them(open_page: Callable[..., Page]) -> None:
    """An encoder alone, and a decoder whose outputs and reasons nobody recorded."""
    rows = np.full((2, 3, 5, 5), 0.2, dtype=np.float32)
    alone = Trace.from_arrays(encoder=rows, source_tokens=list("abcde"))
    page = open_page(tv.export.html(alone))
    page.wait_for_function(DRAWN)
    same_as_the_figure(page, alone, "encoder", 0, 0, 0)
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-part=sentence]")).to_contain_text("The encoder alone, token 2 of 5")
    # Its tokens are the strip that one steps through, and the only one.
    expect(page.locator("[data-part=output] button")).to_have_text(list("abcde"))
    expect(page.locator("[data-part=source], .arrow").locator("visible=true")).to_have_count(0)
    expect(page.get_by_role("slider", name="Token")).to_have_value("1")
    page.locator("[data-part=output] button").nth(3).click()
    expect(page.locator("[data-part=output] .now")).to_have_text("d")
    expect(page.locator("[data-part=output] .later")).to_have_count(0)
    page.wait_for_function("() => location.hash.includes('step=4')")
    same_as_the_figure(page, alone, "encoder", 0, 0, 3)
    masked = np.zeros((5, 5), dtype=bool)
    masked[:, 3] = True
    decoder = Trace.from_arrays(
        decoder=rows * ~masked, target_tokens=list("abcde"), masks={"decoder": masked}, normalised=False
    )
    page = open_page(tv.export.html(decoder, "decoder.2.3", 1))
    page.wait_for_function(DRAWN)
    same_as_the_figure(page, decoder, "decoder", 1, 2, 1)
    assert page.locator("[data-part=output] button").all_inner_texts() == list("abcde")


@pytest.mark.slow
def test_a_head_that_aligns_draws_a_crossing_and_says_where_words_come_from(open_page: Callable[..., Page]) -> None:
    trace = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "hello")
    weights = trace.cross.weights[1, 0]
    page = open_page(tv.export.html(trace, "decoder.1.2", 3, aligner="cross.2.1"))
    lines, tokens = page.locator(".strips .lines path"), "[data-part={}] .token"
    source, output = (page.locator(tokens.format(name)) for name in ("source", "output"))
    ends = """(all) => all.map((line) => [0, line.getTotalLength()].map((at) => line.getPointAtLength(at).x
      + line.ownerSVGElement.getBoundingClientRect().left))"""
    centres = "(all) => all.map((cell) => cell.getBoundingClientRect()).map((box) => box.left + box.width / 2)"
    x, y = source.evaluate_all(centres), output.evaluate_all(centres)
    best = weights.argmax(-1)
    np.testing.assert_allclose(lines.evaluate_all(ends), [(y[t], x[best[t]]) for t in range(4)], atol=1)
    output.nth(1).click()
    expect(page.locator("[data-part=sentence]")).to_contain_text("Pinned: l ← l > 0.99, says L2 H1")
    tints = source.evaluate_all("(all) => all.map((cell) => +cell.style.getPropertyValue('--weight'))")
    # A tint alone: two places are all that an eye can see.
    np.testing.assert_allclose(tints, weights[1], atol=0.005)
    source.nth(best[0]).focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-part=sentence]")).to_contain_text("Pinned: o → o > 0.99, says L2 H1")
    page.get_by_role("combobox", name="Lines").select_option("none")
    expect(lines).to_have_count(0)


@pytest.mark.slow
def test_what_is_pointed_at_is_marked_as_in_the_app(open_page: Callable[..., Page]) -> None:
    trace = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "hello")
    page = open_page(tv.export.html(trace, "cross.2.1", 3))
    page.wait_for_function(DRAWN)
    source = page.locator("[data-part=source] .token")
    source.nth(4).hover()
    expect(source.nth(4)).to_have_class(re.compile("lit"))
    marks = page.locator(".chart > .marks .pointed:not([d=''])")
    expect(marks).to_have_count(3)
    assert [path.count("M") for path in marks.evaluate_all("(all) => all.map((path) => path.getAttribute('d'))")] == [1, 8, 8]
    source.nth(4).click()
    weight = trace.cross.weights[1, 0, 2, 4]
    expect(page.locator("[data-part=sentence]")).to_contain_text("Pinned: key 5·l")
    area = page.locator("[data-part=focus] .nsewdrag[data-subplot=xy]").bounding_box()
    assert area is not None
    page.mouse.click(area["x"] + area["width"] * 4.5 / 7, area["y"] + area["height"] * 2.5 / 6)
    expect(page.locator("[data-part=sentence]")).to_contain_text(f"Pinned: row 3·l→l, key 5·l: {weight:.2f}")
    page.keyboard.press("Escape")
    expect(page.locator("[data-part=sentence]")).not_to_contain_text("Pinned")


_UPPERMOST = """(all) => all.flatMap((line) => {
  line.style.pointerEvents = "stroke";
  const box = line.ownerSVGElement.getBoundingClientRect(), inside = line.getTotalLength() - 2;
  return Array.from({ length: 20 }, (_, i) => line.getPointAtLength(1 + (inside * i) / 19)).map(({ x, y }) => {
    const found = line.getRootNode().elementFromPoint(x + box.left, y + box.top);
    if (!found.classList.contains("token")) return "path";
    return `${found.tagName} ${+!/rgba|\\/ 0/.test(getComputedStyle(found).backgroundColor)}`;
  });
})"""
"""What is seen along each line: the line, or a token and whether nothing shines through it."""


@pytest.mark.slow
def test_where_strips_are_broken_lines_pass_behind_the_letters(open_page: Callable[..., Page]) -> None:
    trace = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "abcdefghijklmno")
    page = open_page(tv.export.html(trace, "cross.1.1", 15, aligner="cross.2.1"))
    page.set_viewport_size({"width": 200, "height": 900})
    lines = page.locator(".strips .lines path")
    expect(lines).to_have_count(16)
    page.wait_for_function("() => [...document.querySelectorAll('.lines path')].some((line) => line.getBBox().height > 100)")
    uppermost = set(lines.evaluate_all(_UPPERMOST))
    assert {"path", "SPAN 1", "BUTTON 1"} == uppermost


@pytest.mark.slow
def test_a_large_run_is_the_same_page_with_rounded_numbers(
    open_page: Callable[..., Page], edited: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heads are unpacked when they are chosen; masks that differ from head to head are there from the beginning."""
    monkeypatch.setattr(packed_heads, "EXACT_UP_TO", 0)
    page = open_page(tv.export.html(edited, "cross.1.1", 5))
    numbers = page.locator("[data-part=numbers]")
    numbers.locator("summary").click()
    rounded = replace(edited, attentions={kind: _rounded(attention) for kind, attention in edited.attentions.items()})
    places: tuple[tuple[Kind, int, Head], ...] = (
        ("cross", 0, 0),
        ("cross", 1, 2),
        ("decoder", 0, "mean"),
        ("encoder", 1, "max"),
    )
    for kind, layer, head in places:
        go(page, kind, layer, head, 5)
        said = "".join(text for _, text in step_sentence(edited, kind, layer, head, 5))
        expect(page.locator("[data-part=sentence]")).to_have_text(said)
        same_as_the_figure(page, rounded, kind, layer, head, 5)
    row, masked = rounded.encoder.head(1, "max")[5], rounded.encoder.head_reasons(1, "max")[5]
    shown = [float(text) for text in numbers.locator("dd").all_text_contents()]
    np.testing.assert_allclose(shown, row[~masked.astype(bool)], atol=1e-6)
    expect(page.locator("[data-part=made]")).to_contain_text("weights rounded to 16 bits")


def _rounded(attention: Attention) -> Attention:
    """With the numbers that a browser unpacks."""
    maps = attention.weights.reshape(-1, *attention.weights.shape[2:])
    unpacked = [packed_heads.packed_weights(one)[1] for one in maps]
    return replace(attention, weights=np.stack(unpacked).reshape(attention.weights.shape))
