"""What can be taken along: the crossing at a run's end, and a picture and a moving one of it, made in the browser."""

from itertools import combinations
from pathlib import Path

import pytest
from PIL import Image, ImageSequence
from playwright.sync_api import Page, expect

from transformer_viz import Trace, decode, load_checkpoint

TEXT = "hello"


@pytest.fixture(scope="module")
def run() -> Trace:
    return decode(load_checkpoint("reverse", device="cpu"), TEXT)


def strong(run: Trace, layer: int, head: int) -> list[tuple[int, int]]:
    """Steps and places of the source with 30 % of a row and more, special tokens left out."""
    weights = run.cross.weights[layer, head]
    return [(t, k) for t in range(run.n_steps - 1) for k in range(1, len(run.source_tokens) - 1) if weights[t, k] >= 0.3]


def test_when_a_run_has_ended_all_its_lines_are_there_and_can_be_taken_along(
    page: Page, server: str, run: Trace, tmp_path: Path
) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{server}/?text={TEXT}&layer=layer+2&head=head+1&step=2")
    lines = page.locator(".strips .lines path")
    expect(page.locator("[data-part=focus] .main-svg").first).to_be_visible()
    expect(page.get_by_role("combobox", name="Lines")).to_have_value("step")
    page.get_by_role("button", name="Last step").click()
    expect(page.get_by_role("combobox", name="Lines")).to_have_value("all")
    looks = strong(run, 1, 0)
    crossing = {one for a, b in combinations(looks, 2) if (a[0] - b[0]) * (a[1] - b[1]) < 0 for one in (a, b)}
    assert crossing
    expect(lines).to_have_count(len(looks))
    expect(page.locator(".strips .lines path.crosses")).to_have_count(len(crossing))
    expect(page.locator("[data-part=brief]")).to_have_text("Where head 1 looked while the model wrote.")
    page.get_by_role("button", name="Share", exact=True).click()
    files = {}
    for name in ("PNG", "GIF"):
        with page.expect_download() as download:
            page.get_by_role("button", name=name, exact=True).click()
        files[name] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[name])
    assert files["PNG"].name == f"{TEXT}.png" and files["GIF"].stat().st_size < 1_500_000
    with Image.open(files["PNG"]) as picture, Image.open(files["GIF"]) as moving:
        assert picture.size == (1200, 675) and moving.size == (800, 450)
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(moving)]
        assert len(frames) == 3 * run.n_steps + 1
        # The last frame is the picture, as far as a table of 255 colours goes.
        wanted, found = picture.convert("RGB").resize(moving.size), frames[-1]
        apart = [abs(a - b) for a, b in zip(wanted.tobytes(), found.tobytes(), strict=True)]
        assert sum(apart) / len(apart) < 2
        assert frames[0].tobytes() != found.tobytes()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Share")).to_have_count(0)


def test_a_step_is_said_in_few_words_and_wholly_for_a_reader(page: Page, server: str, run: Trace) -> None:
    page.goto(f"{server}/?text={TEXT}&layer=layer+2&head=head+1&step=2")
    key = int(run.cross.weights[1, 0, 1].argmax())
    # The text has this letter more than once.
    which = ("first", "second")[run.source_tokens[:key].count(run.source_tokens[key])]
    words = f"Head 1 looks at the {which} {run.source_tokens[key]} (over 99 %), and the model writes {run.output_tokens[1]}."
    expect(page.locator("[data-part=brief]")).to_have_text(words)
    expect(page.locator("[data-part=sentence]")).to_contain_text("layer 2 head 1 looks")
