"""Replay against the checkpoint that training ended with, the untrained model, and single decodings of each snapshot."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import transformer_viz as tv
from tests.training import tiny
from transformer_viz import checkpoints, decode, load_checkpoint, trace_size
from transformer_viz.checkpoints import Checkpoint, save_checkpoint
from transformer_viz.errors import CheckpointError, OptionError, TraceTooLarge
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.terms import KINDS
from transformer_viz.trace.trace import Trace
from transformer_viz.training.make_checkpoint import make_checkpoint, make_model
from transformer_viz.training.replay import trace_training
from transformer_viz.vocabulary import END, END_ID, UNKNOWN

TASK = Reverse("abcd", 23, (2, 5))
RECIPE = replace(
    tiny.RECIPE,
    task_options=TASK.options(),
    model={"d_model": 18, "n_heads": 3, "d_ff": 13, "n_encoder_layers": 1, "n_decoder_layers": 2, "dropout": 0.0},
    clip=1.0,
    seed=5,
)
STEPS = [0, 1, 3, 8, 22, 60]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """Sixty steps of a tiny model, with snapshots."""
    folder = tmp_path_factory.mktemp("trained") / "small"
    make_checkpoint(RECIPE, folder, device="cpu", samples=None, save_seconds=1e9, snapshots=6)
    return load_checkpoint(str(folder), device="cpu")


def close(a: Trace, b: Trace, atol: float) -> None:
    for kind in KINDS:
        x, y = a.attentions[kind].weights, b.attentions[kind].weights
        np.testing.assert_allclose(x, y, atol=atol)


def test_the_first_moment_is_the_untrained_model_and_the_last_the_checkpoint(trained: Checkpoint) -> None:
    """Bitwise, once the weights are rounded as the snapshots' are."""
    untrained = make_model(RECIPE, TASK).eval()
    rounded = [checkpoints.load_checkpoint(str(trained.folder), device="cpu") for _ in range(2)]
    for checkpoint, model in zip(rounded, (untrained, trained.network), strict=True):
        checkpoint.network.load_state_dict({name: tensor.half().float() for name, tensor in model.state_dict().items()})
    moments = tv.trace_training(trained, "abcda")
    first, last = moments[0], moments[-1]
    assert (first.step, last.step) == (0, 60)
    close(first.forced, decode(rounded[0], "abcda", target="adcba"), atol=0)
    close(last.forced, decode(rounded[1], "abcda", target="adcba"), atol=0)
    close(last.forced, decode(trained, "abcda", target="adcba"), atol=2e-3)
    assert last.written.output_tokens == decode(rounded[1], "abcda", max_length=18).output_tokens


def test_every_moment_reads_the_same_target_and_writes_its_own(trained: Checkpoint) -> None:
    moments = trace_training(trained, "abca")
    assert [moment.step for moment in moments] == STEPS
    for moment in moments:
        then = checkpoints.load_snapshot(trained, moment.step)
        assert moment.target == "answer"
        assert moment.forced.target_tokens == ("<start>", *"acba")
        assert moment.forced.output_tokens == (*"acba", END)
        alone = decode(then, "abca")
        assert moment.written.output_tokens == alone.output_tokens[:16], "cut after twice the target and eight"
        assert moment.written.finished == ("length" if len(alone.output_tokens) > 16 else alone.finished)
    first, last = moments[0].forced.cross.weights, moments[-1].forced.cross.weights
    assert np.abs(first - last).max() > 0.1


def test_without_an_answer_all_read_what_the_last_model_writes(trained: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a model that never stops: its output is as long as positions reach, and with an `<end>` it would not fit."""
    monkeypatch.setattr(Reverse, "answer", lambda self, symbols: None)
    own = tuple(token for token in decode(trained, "abcda").output_tokens if token != END)
    moments = trace_training(trained, "abcda")
    assert {(moment.target, moment.forced.output_tokens) for moment in moments} == {("final output", (*own, END))}
    model = make_model(replace(RECIPE, model={**RECIPE.model, "max_positions": 24}), TASK).eval()
    assert isinstance(model.output, torch.nn.Linear)
    model.output.bias.data[END_ID] = -1e4
    moments = trace_training(replace(trained, network=model), "ab", moments=2)
    assert {(moment.forced.n_steps, moment.target) for moment in moments} == {(23 + 1, "final output")}


def test_a_word_that_the_model_does_not_know_is_unknown(trained: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reverse, "answer", lambda self, symbols: ["nowhere", *symbols])
    moments = trace_training(trained, "ab")
    assert moments[0].forced.output_tokens == (UNKNOWN, "a", "b", END)


def test_there_are_never_too_many(trained: Checkpoint) -> None:
    assert [moment.step for moment in trace_training(trained, "ab", moments=2)] == [0, 60]
    assert [moment.step for moment in trace_training(trained, "ab", moments=4)] == [0, 3, 8, 60]
    written, forced = trace_size(trained, "ab", max_length=2 * 2 + 8), trace_size(trained, "ab", target="ba")
    each = written.total + forced.total
    assert [moment.step for moment in trace_training(trained, "ab", max_trace_bytes=3 * each - 1)] == [0, 60]
    assert [moment.step for moment in trace_training(trained, "ab", max_trace_bytes=4 * each)] == [0, 3, 8, 60]
    with pytest.raises(TraceTooLarge) as caught:
        trace_training(trained, "ab", max_trace_bytes=2 * each - 1)
    options, n_bytes = caught.value.offers[0]
    assert options == {"precision": "float16"}
    small = trace_training(trained, "ab", max_trace_bytes=n_bytes, precision="float16")
    assert [moment.step for moment in small] == [0, 60]
    assert {moment.forced.precision for moment in small} == {"float16"}
    impossible: tuple[Any, ...] = (1, 61, True, 2.0)
    for count in impossible:
        with pytest.raises(OptionError, match="2 to 60"):
            trace_training(trained, "ab", moments=count)


def test_no_snapshots_is_said_with_those_that_have_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_snapshots: Callable[..., None]
) -> None:
    for name in ("with", "without"):
        save_checkpoint(tmp_path / name, make_model(RECIPE, TASK), TASK, variant="pre-norm", recipe={}, metrics={})
    make_snapshots(tmp_path / "with")
    (tmp_path / "broken" / "snapshots").mkdir(parents=True)
    monkeypatch.setattr(checkpoints, "folders", lambda: [tmp_path])
    with pytest.raises(CheckpointError, match=r"without has no snapshots .* there are: with\. A training keeps them"):
        trace_training(load_checkpoint("without", "cpu"), "ab")
    (tmp_path / "with" / "snapshots" / "step-000003.safetensors").write_bytes(b"\0" * 20)
    with pytest.raises(CheckpointError, match=r"step-000003\.safetensors is damaged"):
        trace_training(load_checkpoint("with", "cpu"), "ab")
