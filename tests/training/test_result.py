"""The numbers of a training's moments by brute force, and the sentences."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from transformer_viz.sentences.run_sentences import plain
from transformer_viz.trace.trace import Trace
from transformer_viz.training.result import TrainingSnapshot, certainty, course, snapshot_sentence

ALIGNMENT = (3, 1, None)
MASK = np.arange(7) == 6


def trace(seed: int, cross: np.ndarray | None = None, **changes: Any) -> Trace:
    """Two layers of three heads over seven keys, the last of them padding, three rows."""
    rng = np.random.default_rng(seed)
    raw, own = np.where(MASK, 0, rng.random((2, 3, 3, 7))), np.tril(rng.random((2, 3, 3, 3)))
    # A row may be one-hot: its entropy is 0, not a number that is none.
    raw[1, 2] = np.arange(7) == 3
    made = Trace.from_arrays(
        cross=raw / raw.sum(-1, keepdims=True) if cross is None else cross,
        decoder=own / own.sum(-1, keepdims=True),
        masks={"cross": MASK, "decoder": "causal"},
        source_tokens=["<start>", *"abcde", "<pad>"],
        target_tokens=["<start>", "c", "a"],
        output_tokens=["c", "a", "<end>"],
        probabilities=(0.5, 0.25, 0.75),
        text="ca",
    )
    fields: dict[str, Any] = {
        "finished": "end",
        "alignment": ALIGNMENT,
        "expected": "ca",
        "expected_tokens": ("c", "a", "<end>"),
    }
    return replace(made, **{**fields, **changes})


def moments(n: int = 4, **changes: Any) -> list[TrainingSnapshot]:
    runs = [trace(seed, **changes) for seed in range(n)]
    return [TrainingSnapshot(step=3**i if i else 0, written=run, forced=run, target="answer") for i, run in enumerate(runs)]


def test_mass_is_the_mean_weight_on_the_true_keys() -> None:
    found = course(moments(), "cross")
    assert (found.measure, found.values.shape) == ("mass", (4, 2, 3))
    assert found.uniform == pytest.approx(1 / 6)
    for i, layer, head in np.ndindex(4, 2, 3):
        brute = [trace(i).cross.weights[layer, head, t, key] for t, key in enumerate(ALIGNMENT) if key is not None]
        assert found.values[i, layer, head] == pytest.approx(math.fsum(brute) / 2)


@pytest.mark.parametrize(("kind", "changes"), [("cross", {"alignment": (None,) * 3}), ("decoder", {})])
def test_without_true_keys_it_is_the_entropy_as_a_share(kind: Any, changes: dict[str, Any]) -> None:
    found = course(moments(**changes), kind)
    assert (found.measure, found.uniform) == ("entropy", 1.0)
    for i, layer, head in np.ndindex(4, 2, 3):
        weights, masked, shares = trace(i).attentions[kind].weights, trace(i).attentions[kind].mask, []
        for row, gone in zip(weights[layer, head], masked, strict=True):
            if (n := int((~gone).sum())) > 1:
                shares.append(-math.fsum(w * math.log2(w) for w in row.tolist() if w > 0) / math.log2(n))
        assert found.values[i, layer, head] == pytest.approx(math.fsum(shares) / len(shares), abs=1e-7)
    assert kind == "decoder" or found.values[0, 1, 2] == 0


def test_even_attention_has_the_numbers_of_the_dotted_line() -> None:
    even = np.broadcast_to(~MASK / 6, (2, 3, 3, 7))
    for changes in ({}, {"alignment": (None,) * 3}):
        found = course(moments(1, cross=even, **changes), "cross")
        np.testing.assert_allclose(found.values, found.uniform, atol=1e-6)


def test_the_sentence_says_what_is_written_and_how_far_the_head_is() -> None:
    found, last = course(moments(), "cross"), moments()[3]
    said = plain(snapshot_sentence(last, 3, found, "cross", 1, 0))
    assert said == (
        f"After 27 steps of training the model writes `ca`, which is right; "
        f"layer 2 head 1 has {100 * found.values[3, 1, 0]:.0f} % of its attention on the right tokens."
    )
    wrong = replace(last, step=0, written=trace(3, text="", finished="length"))
    said = plain(snapshot_sentence(wrong, 3, found, "cross", 1, 0))
    assert said.startswith("Before any training the model writes nothing and does not stop, which is wrong; ")
    unknown = replace(last, step=1, written=trace(3, expected=None, expected_tokens=None))
    said = plain(snapshot_sentence(unknown, 3, found, "cross", 1, 0))
    assert said.startswith("After 1 step of training the model writes `ca`; ")
    assert certainty(last) == pytest.approx(0.5)
