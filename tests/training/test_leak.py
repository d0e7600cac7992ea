"""A model that was trained without its causal mask: the shipped one, which has learned to read its answer."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import transformer_viz as tv
from tests.training import tiny
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import mistakes
from transformer_viz.training.batches import batches
from transformer_viz.training.losses import loss_sum
from transformer_viz.training.make_checkpoint import make_model
from transformer_viz.vocabulary import PAD_ID

TEXTS = ("hello", "quisniseqv", "reversethis", "abcdefghijklmnop", "zzyzzxyzzyxyzzyxyz")


@pytest.fixture(scope="module")
def leak() -> LoadedModel:
    return tv.load_checkpoint("reverse-leak", device="cpu")


def share_right(model: LoadedModel, mistake: str | None) -> float:
    traces = tv.read_batch(model, TEXTS, [text[::-1] for text in TEXTS], mistake=mistake)
    right = [
        step.candidates[0][0] == token
        for trace, text in zip(traces, TEXTS, strict=True)
        for step, token in zip(trace.steps, text[::-1], strict=False)
    ]
    return float(np.mean(right))


def test_it_looks_perfect_while_it_reads_its_answer_and_can_write_nothing(leak):
    assert leak.recipe is not None and leak.recipe["mistake"] == "no-causal"
    assert share_right(leak, "no-causal") > 0.95
    assert share_right(leak, None) < 0.5
    assert not any(tv.decode(leak, text).text == text[::-1] for text in TEXTS)


def test_a_row_looks_at_the_token_that_it_must_write(leak):
    """Which stands one key further on, since the target is read behind a start token."""
    trace = tv.read_batch(leak, ["reversethis"], ["sihtesrever"], mistake="no-causal")[0]
    weights = trace.attentions["decoder"].weights[0]
    ahead = np.diagonal(weights, offset=1, axis1=-2, axis2=-1)[:, :11]
    assert ahead.mean(-1).max() > 0.5
    assert np.triu(tv.read_batch(leak, ["reversethis"], ["sihtesrever"])[0].attentions["decoder"].weights[0], 1).max() == 0


def test_a_recipe_with_a_mistake_has_the_loss_of_the_model_that_makes_it():
    recipe = replace(tiny.RECIPE, mistake="no-causal")
    other = make_model(recipe, tiny.TASK)
    event = tiny.trainer(recipe).take_step(report=True)
    batch = batches(recipe, tiny.TASK)(0)
    tap = mistakes.MistakeTap(mistakes.named("no-causal"))
    n_tokens = int((batch.target_out != PAD_ID).sum())
    with torch.no_grad():
        read = (batch.source, batch.target_in, batch.source_padding, batch.target_padding)
        leaking, sound = (loss_sum(other(*read, tap=each), batch.target_out, recipe) for each in (tap, None))
    assert event is not None
    assert event.loss == pytest.approx(float(leaking) / n_tokens, rel=1e-6)
    assert event.loss != pytest.approx(float(sound) / n_tokens, rel=1e-3)
