"""How it learned, in a real browser: arrow keys go through a training, and the map's numbers are those of each moment."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

import transformer_viz as tv
from benchmarks import served
from tests.browser.charts import FOCUS, link_of, wait_for_head, wait_for_step, wait_for_weights, wait_until_drawn
from transformer_viz.checkpoints import FOLDERS_VARIABLE, save_checkpoint
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.tasks.reverse import Reverse

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SMALL = ".st-key-picture .mosaics [data-kind=cross]"
NAME, TEXT, STEPS = "tiny-learned", "abcabd", (0, 1, 3, 8, 22)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, make_snapshots: Callable[..., None]) -> Path:
    task = Reverse("abcd", 11, (1, 5))
    size = len(task.source_vocabulary)
    torch.manual_seed(3)
    config = ModelConfig(source_vocabulary_size=size, target_vocabulary_size=size, d_model=12, n_heads=3, d_ff=7)
    parent = tmp_path_factory.mktemp("checkpoints")
    save_checkpoint(parent / NAME, Transformer(config), task, variant="pre-norm", recipe={}, metrics={})
    make_snapshots(parent / NAME, STEPS)
    return parent


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    """A server of its own, which finds the tiny checkpoint beside the shipped ones."""
    before = os.environ.get(FOLDERS_VARIABLE)
    os.environ[FOLDERS_VARIABLE] = str(folder)
    try:
        with served.server() as running:
            yield running.url
    finally:
        del os.environ[FOLDERS_VARIABLE]
        if before is not None:
            os.environ[FOLDERS_VARIABLE] = before


def candidates(page: Page) -> list[float]:
    return page.evaluate(f"[...document.querySelector('{FOCUS}').data.find(t => t.type === 'bar').x]")


def test_arrow_keys_step_through_training_and_a_link_opens_the_same_moment(page: Page, server: str, folder: Path) -> None:
    moments = tv.trace_training(tv.load_checkpoint(str(folder / NAME), device="cpu"), TEXT)
    page.goto(f"{server}/train?learned=true&checkpoint={NAME}&text={TEXT}&layer=2&head=3&position=4")
    wait_for_step(page, 4)
    expect(page.locator("[data-part=output] button")).to_have_text([str(step) for step in STEPS])
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Home")
    for place, moment in enumerate(moments):
        wait_for_step(page, place)
        wait_for_weights(page, moment.forced.cross.weights[1, 2], 1e-6)
        best = [p for _, p in moment.forced.steps[3].candidates[:5]]
        # The sixth is the target's own token where the five best do not have it.
        np.testing.assert_allclose(candidates(page)[:5], best, atol=1e-6)
        written = page.locator("[data-part=written] span").all_inner_texts()
        assert written == list(moment.written.output_tokens)
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    wait_for_step(page, 2)
    expect(page).to_have_url(re.compile(r"[?&]moment=3\b"))
    expect(page.locator(".stMain")).to_contain_text("All heads. After 3 steps of training")
    wait_for_step(page, 2)
    sentence = page.locator("[data-part=sentence]").inner_text()
    assert sentence.startswith("After 3 steps of training the model writes")
    page.goto(link_of(page))
    wait_for_step(page, 2)
    expect(page.locator("[data-part=sentence]")).to_have_text(sentence)


def test_a_click_on_a_tile_takes_the_moment_with_it(page: Page, server: str) -> None:
    page.goto(f"{server}/train?learned=true&checkpoint={NAME}&text={TEXT}&layer=2&head=3")
    wait_for_step(page, 4)
    page.locator("[data-part=output] button").nth(1).click()
    expect(page.locator(".stMain")).to_contain_text("All heads. After 1 step of training")
    wait_until_drawn(page, SMALL)
    tile = page.locator(SMALL)
    box = tile.bounding_box()
    assert box is not None
    # Layer 1, head 1 of 2 x 3.
    tile.click(position={"x": box["width"] * 0.15, "y": box["height"] * 0.35})
    wait_for_head(page, "cross", 0, 0)
    wait_for_step(page, 1)
    expect(page).to_have_url(re.compile(r"moment=1\b"))
    expect(page.locator("[data-part=sentence]")).to_contain_text("layer 1 head 1")
