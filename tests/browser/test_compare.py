"""Compare in a real browser: what is drawn is A − B, a link opens the same elsewhere; tiles, the table, keys and files."""

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from tests.browser.charts import (
    ROWS,
    at_rest,
    bring_into_view,
    click_point,
    click_tile,
    link_of,
    point_at,
    wait_for_link,
    wait_for_weights,
    wait_until_drawn,
)
from transformer_viz.addresses import AttentionAddress, map_address
from transformer_viz.checkpoints import load_snapshot

pytestmark = pytest.mark.browser

MAPS = ".pair [data-part=difference]"
A = ".pair [data-side=A]"
LINK = (
    "compare?text=reversethis&checkpoint=reverse-small&b_text=reversethat&b_checkpoint=reverse-small&b_snapshot=227"
    "&b_strategy=sample&b_seed=3&b_temperature=1.5&kind=decoder&layer=1&head=3&scale=largest"
)
SIGNED = "(trace) => trace.coloraxis === 'coloraxis2'"
Z = f"""() => {{
  const chart = document.querySelector('{MAPS}');
  const signed = chart.data.filter({SIGNED});
  return ({ROWS})({{ data: signed }}).map((row) => [...row].map((value) => Number.isNaN(value) ? null : value));
}}"""
DRAWN = f"[...document.querySelectorAll('{MAPS}')].some((chart) => chart.data?.some({SIGNED}) && !chart.ariaBusy)"


def difference(page: Page) -> np.ndarray:
    page.wait_for_function(DRAWN)
    return np.array(page.evaluate(Z), dtype=np.float32)


@pytest.fixture(scope="module")
def small() -> tv.Checkpoint:
    return tv.load_checkpoint("reverse-small", device="cpu")


@pytest.mark.slow
def test_a_link_opens_the_same_in_another_browser(page: Page, another: Page, server: str, small: tv.Checkpoint) -> None:
    a = tv.decode(small, "reversethis")
    b = tv.decode(load_snapshot(small, 227), "reversethat", strategy="sample", temperature=1.5, seed=3)
    laid = tv.compare(a, b).one_head("decoder.1.3")
    page.goto(f"{server}/{LINK}")
    shown = difference(page)
    np.testing.assert_array_equal(shown, np.where(laid.masked == 3, np.nan, laid.difference))
    expect(page).to_have_url(re.compile("b_temperature=1.5"))
    at_rest(page)
    words = page.locator(".compare").all_inner_texts()
    another.goto(link_of(page))
    np.testing.assert_array_equal(difference(another), shown)
    at_rest(another)
    assert another.locator(".compare").all_inner_texts() == words
    for label in ("A: source text", "B: source text"):
        expect(another.get_by_label(label)).to_have_value(page.get_by_label(label).input_value())
    # The order of what a link says means nothing.
    assert sorted(parse_qsl(urlsplit(link_of(another)).query)) == sorted(parse_qsl(urlsplit(page.url).query))


def test_it_opens_on_the_text_of_all_pages_and_the_table_and_the_tiles_choose_heads(page: Page, server: str) -> None:
    page.goto(f"{server}/compare")
    page.wait_for_function(DRAWN)
    model = tv.load_checkpoint("reverse", device="cpu")
    comparison = tv.compare(tv.decode(model, "reversethis"), tv.decode(model, "revertethis"))
    farthest = comparison.farthest("encoder")
    assert farthest is not None
    page.get_by_title("show this head of encoder self-attention").click()
    # The head that differs most is the default, and so not in the link.
    wait_for_link(page, kind="encoder self-attention")
    page.wait_for_function(DRAWN)
    expected = comparison.difference(map_address("encoder", farthest.layer, farthest.head))
    page.wait_for_function(f"() => ({Z})().length === {len(expected)}")
    np.testing.assert_array_equal(difference(page), expected)
    # The fourth tile of the first row, by the mouse.
    tiles = f"{A} [data-part=mosaics] [data-kind=cross]"
    wait_until_drawn(page, tiles)
    page.locator(tiles).scroll_into_view_if_needed()
    click_tile(page, tiles, 0, 3)
    wait_for_link(page, kind="cross-attention", layer="layer 1", head="head 4")


@pytest.mark.slow
def test_swap_by_keyboard_and_an_error_of_one_side(page: Page, server: str) -> None:
    page.goto(f"{server}/compare?text=hello&checkpoint=reverse&b_text=halle&b_checkpoint=reverse&kind=cross&layer=1&head=1")
    there = difference(page)
    page.get_by_role("button", name="Swap A and B").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("A: source text")).to_have_value("halle")
    expect(page).to_have_url(re.compile("text=halle&.*b_text=hello"))
    page.wait_for_function(f"() => {{ const z = ({Z})(); return Math.abs(z[0][5] - {-there[0][5]}) < 1e-6; }}")
    np.testing.assert_array_equal(difference(page), -there)
    page.get_by_label("B: source text").fill("<b>🙂")
    page.get_by_label("B: source text").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Character 4 is")
    expect(page.get_by_text("A alone: there is nothing to compare it with yet.")).to_be_visible()
    expect(page.locator(".st-key-picture .viewer")).to_have_count(1)
    expect(page.get_by_label("B: source text")).to_have_value("<b>🙂")


@pytest.mark.slow
def test_the_run_of_a_place_by_mouse(page: Page, server: str) -> None:
    model = tv.load_checkpoint("reverse", device="cpu")
    a, b = tv.decode(model, "hello"), tv.decode(model, "hellx")
    found = tv.patch(model, a, b)
    page.goto(f"{server}/compare?text=hello&checkpoint=reverse&b_text=hellx&b_checkpoint=reverse")
    page.get_by_text("Patch A into B", exact=True).click()
    cross, said = ".st-key-patch-map-cross .chart", page.locator(".st-key-patched-run .sentence")
    wait_for_weights(page, found.effects["cross"].reshape(8, -1), 1e-6, cross)
    best = found.largest(1)[0]
    expect(said).to_contain_text(f"it brings back +{best.value:.2f}")
    expect(page).to_have_url(re.compile("patching=true"))
    bring_into_view(page.locator(cross))
    click_point(page, cross, 0, 5)
    expect(page).to_have_url(re.compile(r"patch_place=cross\.2\.2%3A1"))
    expect(said).to_contain_text("layer 2 head 2 of cross-attention of A at token 1 <start>")
    page.mouse.move(5, 5)
    point_at(page, cross, 0, 1)
    expect(page.locator(f"{cross} .hovertext")).to_contain_text(f"brings back {found.effects['cross'][0, 1, 0]:+.3f}")
    click_point(page, cross, 0, 1)
    expect(page).to_have_url(re.compile(r"patch_place=cross\.1\.2%3A1"))
    # The box says the same place, and sets another.
    box = page.get_by_role("combobox", name="Place of A")
    expect(box).to_have_value("cross.1.2:1")
    box.fill("cross.2.2:1")
    box.press("Enter")
    expect(said).to_contain_text("layer 2 head 2 of cross-attention of A at token 1 <start>")
    click_point(page, cross, 0, 1)
    changed = tv.patched_run(model, a, b, AttentionAddress("cross", 0, 1), 0)
    strip = page.locator(".st-key-patched-run .strip .pair")
    expect(strip).to_have_text(["ABB′", *map("".join, zip(a.output_tokens, b.output_tokens, changed.tokens, strict=True))])


@pytest.mark.slow
def test_two_files(page: Page, server: str, small: tv.Checkpoint, tmp_path: Path) -> None:
    a, b = tv.decode(small, "reversethis"), tv.decode(small, "thisqaipa", strategy="beam")
    tv.save_trace(a, tmp_path / "one.npz")
    tv.save_trace(b, tmp_path / "two.npz")
    page.goto(f"{server}/compare?text=hello&checkpoint=reverse&b_text=halle&b_checkpoint=reverse&kind=cross&layer=1&head=2")
    page.wait_for_function(DRAWN)
    page.get_by_role("button", name="Open files").click()
    page.locator("input[type=file]").set_input_files([tmp_path / "one.npz", tmp_path / "two.npz"])
    # The boxes are there once the files have been read.
    expect(page.get_by_role("combobox", name="B: run or file")).to_have_count(1)
    page.keyboard.press("Escape")
    for label, name in (("A: run or file", "one"), ("B: run or file", "two")):
        # A click of no time at all would end on Streamlit's list where that is for its first frame, in the page's corner.
        page.get_by_role("combobox", name=label).press("ArrowDown")
        page.get_by_role("option", name=name, exact=True).click()
        expect(page).to_have_url(re.compile(f"{label[0].lower()}_file={name}"))
    expect(page.locator(".compare .sentence")).to_contain_text("A reads reversethis, B thisqaipa")
    laid = tv.compare(a, b).one_head("cross.1.2")
    page.wait_for_function(f"{DRAWN} && ({Z})().length === {len(laid.difference)}")
    np.testing.assert_array_equal(difference(page), laid.difference)


@pytest.mark.slow
def test_a_word_asks_the_head_that_aligns_in_its_own_run(page: Page, server: str) -> None:
    """Chosen on Explore, it is known of every run of the model."""
    page.goto(f"{server}/?text=hello&aligner=2.1")
    wait_until_drawn(page)
    page.get_by_role("link", name="Compare", exact=True).click()
    page.wait_for_function(DRAWN)
    trace = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "hello")
    word, sentence = f"{A} [data-part={{}}] .token", page.locator(f"{A} [data-part=sentence]")
    page.locator(word.format("output")).nth(1).click()
    expect(sentence).to_contain_text("Pinned: l ← l > 0.99, says L2 H1")
    tints = page.locator(word.format("source")).evaluate_all(
        "(all) => all.map((cell) => +cell.style.getPropertyValue('--weight'))"
    )
    assert np.argmax(tints) == trace.cross.weights[1, 0, 1].argmax()
    # The same row of B is pinned there.
    expect(page.locator(".pair [data-side=B] [data-part=sentence]")).to_contain_text("Pinned:")
    page.locator(word.format("source")).nth(5).click()
    expect(sentence).to_contain_text("Pinned: o → o > 0.99, says L2 H1")
    page.locator(word.format("source")).nth(5).click()
    expect(sentence).not_to_contain_text("Pinned")


def test_both_runs_follow_each_other_and_what_is_pressed_is_in_the_link(page: Page, another: Page, server: str) -> None:
    sides = "text=hello&checkpoint=reverse&b_text=hellox&b_checkpoint=reverse"
    page.goto(f"{server}/compare?{sides}&kind=cross&layer=1&head=1&step=2")
    page.wait_for_function(DRAWN)
    now = [page.locator(f".pair [data-side={side}] [data-part=output] .now") for side in "AB"]
    model = tv.load_checkpoint("reverse", device="cpu")
    a, b = tv.decode(model, "hello"), tv.decode(model, "hellox")
    for side, run in zip(now, (a, b), strict=True):
        expect(side).to_have_text(run.output_tokens[1])
    page.keyboard.press("ArrowRight")
    for side, run in zip(now, (a, b), strict=True):
        expect(side).to_have_text(run.output_tokens[2])
    # B has written more: its last step is none of A's.
    page.locator(".pair [data-side=B] [data-part=output] .token").last.click()
    expect(now[1]).to_have_text(b.output_tokens[-1])
    expect(now[0]).to_have_text(a.output_tokens[-1])
    page.get_by_role("button", name="decoder self-attention").click()
    wait_for_link(page, kind="decoder self-attention")
    expected = tv.compare(a, b).one_head("decoder.1.1")
    wanted = np.where(expected.masked == 3, np.nan, expected.difference)
    page.wait_for_function(f"() => ({Z})()[0].length === {wanted.shape[1]}")
    np.testing.assert_array_equal(difference(page), wanted)
    at_rest(page)
    another.goto(link_of(page))
    np.testing.assert_array_equal(difference(another), wanted)
    expect(another.locator(".pair [data-side=B] [data-part=output] .now")).to_have_text(b.output_tokens[-1])
