"""The largest run in the app: 512 source tokens, 6 layers of 8 heads, random weights, made for this in a temporary folder.

Enter until drawn is measured twice. With a text that was never decoded the decoding is part of it. With one whose Trace the
server still has, it is the time from a finished Trace to everything drawn.
"""

import tempfile
from pathlib import Path

import torch
from playwright.sync_api import Page

from benchmarks import browser, served
from benchmarks.measure import LEAST_RUNS, Line, Number, Report, Target
from transformer_viz.checkpoints import FOLDERS_VARIABLE, save_checkpoint
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.vocabulary import END_ID, PAD_ID, START_ID

TITLE = "512 tokens, 6 × 8 heads, in the app"
LETTERS, LAYERS, HEADS = 510, 6, 8
TRIES = 7
NAME = "benchmark-6x8"
TARGETS = {
    "opens": Target("512 tokens × 48 heads, from its Trace until everything is drawn, median", "at most", 2000, "ms"),
    "step": Target("… and stays interactive: one step, median", "at most", 500, "ms"),
    "tile": Target("… and stays interactive: a click on a small map, median", "at most", 2000, "ms"),
}


def measure(report: Report) -> None:
    """Beside the same page with 12 letters and 2 × 4 heads."""
    with tempfile.TemporaryDirectory() as folder, browser.browser() as running:
        make_checkpoint(Path(folder) / NAME)
        with served.server(environment={FOLDERS_VARIABLE: folder}) as server:
            page = browser.opened(running, server.url)
            small = [browser.enter(page, browser.letters(12, number))["everything"] for number in range(TRIES)]
            few = Number.of("12 letters, 2 × 4 heads", small)
            browser.switch_checkpoint(page, NAME, browser.letters(12, TRIES - 1))
            texts = [browser.letters(LETTERS, number) for number in range(LEAST_RUNS)]
            _add(report, "Enter until everything is drawn, decoding included", [_enter(page, t) for t in texts], few)
            known = [_enter(page, texts[number % len(texts)]) for number in range(TRIES)]
            report.values["opens"] = _add(report, "Enter until everything is drawn, from its Trace", known, few)
            steps = [browser.step(page, number) for number in range(TRIES)]
            report.values["step"] = _add(report, "one step", steps, few)
            tiles = [browser.click_tile(page, number) for number in range(1, TRIES + 1)]
            report.values["tile"] = _add(report, "a click on a small map until it is the focus", tiles, few)


def make_checkpoint(folder: Path) -> None:
    """A model that writes as many tokens as its task allows."""
    task = Reverse(max_length=LETTERS)
    size = len(task.target_vocabulary)
    torch.manual_seed(0)
    model = Transformer(
        ModelConfig(
            source_vocabulary_size=size,
            target_vocabulary_size=size,
            d_model=64,
            d_ff=128,
            n_heads=HEADS,
            n_encoder_layers=LAYERS,
            n_decoder_layers=LAYERS,
        )
    )
    output = model.output
    assert isinstance(output, torch.nn.Linear)
    with torch.no_grad():
        output.bias[[PAD_ID, START_ID, END_ID]] = -1e4
    save_checkpoint(folder, model, task, variant="pre-norm", recipe={}, metrics={})


def _enter(page: Page, text: str) -> float:
    return browser.enter(page, text)["everything"]


def _add(report: Report, what: str, times: list[float], other: Number) -> float:
    return report.add(Line(f"{LETTERS + 2} tokens: {what}", Number.of("ours", times), other, "ms", len(times))).ours.value
