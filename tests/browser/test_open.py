"""A trace file in a real browser: it is dropped, stepped through and clicked; a link keeps the place; markup stays text."""

import base64
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from tests.browser.charts import choose, drawn, link_of, texts, wait_for_head, wait_for_link, wait_for_step
from tests.browser.drawn import DRAWN as PAGE_DRAWN
from transformer_viz.text_display import display_token
from transformer_viz.trace.trace import Trace

pytestmark = pytest.mark.browser

HOSTILE = ("<img src=x onerror=window.hacked=1>", "</script><script>window.hacked=1</script>", "<s>", "**b**", "$x$")


def rows(*shape: int) -> np.ndarray:
    weights = np.random.default_rng(3).random(shape)
    return weights / weights.sum(-1, keepdims=True)


@pytest.fixture(scope="module")
def trace() -> Trace:
    """Sizes that are different primes; 5 layers and 7 heads are more than any shipped model has."""
    return Trace.from_arrays(
        cross=rows(5, 7, 11, 13),
        encoder=rows(2, 3, 13, 13),
        source_tokens=[f"s{i}" for i in range(13)],
        target_tokens=[f"t{i}" for i in range(11)],
        output_tokens=[f"o{i}" for i in range(11)],
        probabilities=[0.5] * 11,
    )


def drop(page: Page, path: Path) -> None:
    """Once the box is there alone: one that has been read gives way to an empty one."""
    box = page.locator("[data-testid=stFileUploader] input[type=file]")
    expect(box).to_have_count(1)
    box.set_input_files(path)


def focus_map(page: Page) -> np.ndarray:
    """The numbers of the focus map that the browser has drawn; blank cells are NaN."""
    return drawn(page)


def at_step(page: Page, step: int) -> None:
    wait_for_step(page, step)


@pytest.mark.slow
def test_a_dropped_file_is_stepped_and_its_link_keeps_the_place(
    page: Page, another: Page, server: str, trace: Trace, tmp_path: Path
) -> None:
    path = tmp_path / "mine & more.npz"
    tv.save_trace(trace, path)
    page.goto(f"{server}/?checkpoint=trace+file&all_controls=true")
    drop(page, path)
    at_step(page, 10)
    np.testing.assert_allclose(focus_map(page), trace.cross.weights[0, 0], atol=1e-6)
    choose(page, "Layer", "layer 4")
    wait_for_head(page, "cross", 3, 0)
    page.locator("[data-part=output] button").nth(6).click()
    expect(page).to_have_url(re.compile("step=7"))
    wait_for_link(page, layer="layer 4")
    np.testing.assert_allclose(focus_map(page)[:7], trace.cross.weights[3, 0, :7], atol=1e-6)
    page.get_by_role("tab", name="Masks").click()
    expect(page).to_have_url(re.compile("explore_tab=Masks"))
    # The link in another browser: it has the place, and asks for the file.
    another.goto(link_of(page))
    expect(another.locator(".stMain")).to_contain_text("A link cannot hold a file. Drop the file here")
    drop(another, path)
    at_step(another, 6)
    wait_for_head(another, "cross", 3, 0)
    np.testing.assert_allclose(focus_map(another)[:7], trace.cross.weights[3, 0, :7], atol=1e-6)
    expect(another.get_by_role("tab", name="Masks")).to_have_attribute("aria-selected", "true")
    # Elsewhere and back: what was opened is still there.
    page.get_by_role("link", name="Masks").click()
    expect(page.get_by_role("tab", name="Scores to weights")).to_be_visible()
    page.get_by_role("link", name="Explore").click()
    choose(page, "Checkpoint", "a trace file …")
    expect(page.locator("[data-part=output] button")).to_have_text([f"o{i}" for i in range(11)])


@pytest.mark.slow
def test_a_run_that_was_downloaded_comes_back(page: Page, server: str, tmp_path: Path) -> None:
    page.goto(f"{server}/?text=hello&layer=2&head=3")
    at_step(page, 4)
    before = focus_map(page)
    page.get_by_role("tab", name="Export").click()
    page.get_by_role("button", name="Data").click()
    page.get_by_role("button", name="Trace", exact=True).click()
    with page.expect_download() as event:
        page.get_by_role("button", name=re.compile("Download attention-hello")).click()
    path = tmp_path / event.value.suggested_filename
    event.value.save_as(path)
    want = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "hello")
    assert tv.diff(want, tv.load_trace(path)).equal
    page.goto(f"{server}/?checkpoint=trace+file&layer=2&head=3")
    drop(page, path)
    at_step(page, 4)
    np.testing.assert_array_equal(focus_map(page), before)
    expect(page.locator("[data-part=output] button")).to_have_text([*"olleh", "<end>"])


@pytest.mark.slow
def test_markup_in_a_file_shows_as_it_is(page: Page, server: str, tmp_path: Path, open_page: Callable[..., Page]) -> None:
    tokens = [*HOSTILE]
    trace = Trace.from_arrays(
        cross=rows(2, 3, 5, 5),
        source_tokens=tokens,
        target_tokens=tokens,
        output_tokens=tokens,
        probabilities=[0.5] * 5,
        candidates=[[(token, 0.5), (HOSTILE[0] + " ", 0.25)] for token in tokens],
        made_by={"checkpoint": HOSTILE[0], HOSTILE[1]: HOSTILE[2]},
    )
    path = tmp_path / "<img src=x onerror=window.hacked=1>.npz"
    tv.save_trace(trace, path)
    page.goto(f"{server}/?checkpoint=trace+file&all_controls=true")
    drop(page, path)
    at_step(page, 4)
    for part in ("source", "output"):
        shown = page.locator(f"[data-part={part}]").locator(".token")
        expect(shown).to_have_text([display_token(token) for token in tokens])
    expect(page.locator("[data-part=sentence]")).to_contain_text(HOSTILE[2])
    expect(page.locator(".st-key-file-bar")).to_contain_text(HOSTILE[0])
    labels = texts(page, "ytick")
    assert any("</script>" in label for label in labels)
    for tab in ("Heads", "Masks", "Export"):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
    page.get_by_role("button", name="Prepare the file").click()
    with page.expect_download() as event:
        page.get_by_role("button", name=re.compile("Download attention-")).click()
    assert page.evaluate("window.hacked") is None
    assert page.locator(".stMain img:not(.brand img)").count() == 0
    exported = open_page(event.value.path().read_text(encoding="utf-8"))
    exported.wait_for_function(PAGE_DRAWN)
    shown = exported.locator("[data-part=source] .token").all_inner_texts()
    assert shown == [display_token(token) for token in tokens]
    assert exported.evaluate("() => window.hacked") is None


def test_what_is_no_trace_is_said_and_what_is_too_large_is_not_sent(page: Page, server: str, tmp_path: Path) -> None:
    page.goto(f"{server}/?checkpoint=trace+file&all_controls=true")
    bad = tmp_path / "<b>bad</b>.npz".replace("/", "")
    bad.write_bytes(base64.b64decode("bm90IGEgdHJhY2U="))
    drop(page, bad)
    expect(page.get_by_role("alert")).to_contain_text("<b>bad<b>.npz is damaged or not a trace file")
    large = tmp_path / "large.npz"
    with large.open("wb") as file:
        file.truncate(65 * 2**20)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "PUT" else None)
    drop(page, large)
    expect(page.locator("[data-testid=stFileUploader]")).to_contain_text("64")
    expect(page.locator("[data-testid=stFileUploader]")).to_contain_text(re.compile("must be 64.*MB or smaller", re.IGNORECASE))
    assert not sent


@pytest.mark.slow
def test_a_file_that_is_too_large_is_refused_with_what_is_allowed_and_a_way_out(
    page: Page, server: str, tmp_path: Path
) -> None:
    large = tmp_path / "large.npz"
    with large.open("wb") as file:
        file.truncate(65 * 2**20)
    page.goto(f"{server}/?checkpoint=trace+file&all_controls=true")
    page.locator("input[type=file]").first.set_input_files(large)
    box = page.get_by_test_id("stFileUploader").first
    expect(box).to_contain_text("large.npz")
    expect(box).to_contain_text("File must be 64.0MB or smaller")
    expect(page.get_by_text("Too large? Record less of the run")).to_be_visible()
