"""The numbers of a training's moments by brute force, and the sentences."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.attentions import chosen
from transformer_viz.analysis.sentences import plain
from transformer_viz.terms import Kind, Reason
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.steps import Step
from transformer_viz.trace.trace import Trace
from transformer_viz.training.result import TrainingSnapshot, certainty, course, snapshot_sentence

SOURCE = ("<start>", *"abcde", "<end>")
TARGET = ("c", "a", "<end>")
ALIGNMENT = (3, 1, None)


def trace(seed: int, **changes: Any) -> Trace:
    """Two layers of three heads over seven keys, the last of them padding, three rows."""
    rng = np.random.default_rng(seed)
    masks: dict[Kind, np.ndarray] = {
        "cross": np.zeros((3, 7), np.uint8),
        "decoder": np.triu(np.full((3, 3), int(Reason.FUTURE), np.uint8), 1),
    }
    masks["cross"][:, 6] = Reason.PADDING
    raw = {kind: np.where(reasons > 0, 0, rng.random((2, 3, *reasons.shape))) for kind, reasons in masks.items()}
    # A row may be one-hot: its entropy is 0, not a number that is none.
    raw["cross"][1, 2] = 0
    raw["cross"][1, 2, :, 3] = 1
    weights = {kind: (w / w.sum(-1, keepdims=True)).astype(np.float32) for kind, w in raw.items()}
    attentions = {kind: Attention(weights=weights[kind], reasons=masks[kind]) for kind in masks}
    steps = tuple(
        Step(token=token, probability=p, log_probability=math.log(p), rank=0, candidates=((token, p),))
        for token, p in zip(TARGET, (0.5, 0.25, 0.75), strict=True)
    )
    fields: dict[str, Any] = {
        "source": "abcde",
        "text": "ca",
        "source_tokens": SOURCE,
        "target_tokens": ("<start>", *TARGET[:-1]),
        "output_tokens": TARGET,
        "steps": steps,
        "attentions": chosen(attentions, changes),
        "finished": "end",
        "alignment": ALIGNMENT,
        "source_letters": (None, 0, 1, 2, 3, 4, None),
        "expected": "ca",
        "expected_tokens": TARGET,
    }
    return Trace(**{**fields, **changes})


def moments(n: int = 4, **changes: Any) -> list[TrainingSnapshot]:
    runs = [trace(seed, **changes) for seed in range(n)]
    return [TrainingSnapshot(step=3**i if i else 0, written=run, forced=run, target="answer") for i, run in enumerate(runs)]


def test_mass_is_the_mean_weight_on_the_true_keys() -> None:
    found = course(moments(), "cross")
    assert (found.measure, found.values.shape) == ("mass", (4, 2, 3))
    assert found.uniform == pytest.approx(1 / 6)
    for i in range(4):
        cross = trace(i).cross.weights
        for layer in range(2):
            for head in range(3):
                brute = [float(cross[layer, head, t, key]) for t, key in enumerate(ALIGNMENT) if key is not None]
                assert found.values[i, layer, head] == pytest.approx(math.fsum(brute) / 2)


@pytest.mark.parametrize(("kind", "changes"), [("cross", {"alignment": (None,) * 3}), ("decoder", {})])
def test_without_true_keys_it_is_the_entropy_as_a_share(kind: Any, changes: dict[str, Any]) -> None:
    found = course(moments(**changes), kind)
    assert (found.measure, found.uniform) == ("entropy", 1.0)
    for i in range(4):
        run = trace(i)
        weights, masked = run.attentions[kind].weights, run.attentions[kind].mask
        for layer in range(2):
            for head in range(3):
                shares = []
                for row, gone in zip(weights[layer, head], masked, strict=True):
                    n = int((~gone).sum())
                    if n > 1:
                        shares.append(-math.fsum(w * math.log2(w) for w in row.tolist() if w > 0) / math.log2(n))
                assert found.values[i, layer, head] == pytest.approx(math.fsum(shares) / len(shares), abs=1e-7)
    if kind == "cross":
        assert found.values[0, 1, 2] == 0


def test_even_attention_has_the_numbers_of_the_dotted_line() -> None:
    allowed = ~trace(0).cross.mask
    even = np.broadcast_to(allowed / allowed.sum(-1, keepdims=True), (2, 3, 3, 7)).astype(np.float32)
    by_mass = course(moments(1, cross=even), "cross")
    np.testing.assert_allclose(by_mass.values, by_mass.uniform, atol=1e-7)
    by_entropy = course(moments(1, cross=even.copy(), alignment=(None,) * 3), "cross")
    np.testing.assert_allclose(by_entropy.values, by_entropy.uniform, atol=1e-6)


def test_the_sentence_says_what_is_written_and_how_far_the_head_is() -> None:
    found = course(moments(), "cross")
    one = moments()[3]
    mass = f"{100 * found.values[3, 1, 0]:.0f} %"
    said = plain(snapshot_sentence(one, 3, found, "cross", 1, 0))
    assert said == (
        f"After 27 steps of training the model writes `ca`, which is right; "
        f"layer 2 head 1 has {mass} of its attention on the right tokens."
    )
    wrong = replace(one, step=0, written=trace(3, text="", expected="ca", finished="length"))
    said = plain(snapshot_sentence(wrong, 3, found, "cross", 1, 0))
    assert said.startswith("Before any training the model writes nothing and does not stop, which is wrong; ")
    unknown = replace(one, step=1, written=trace(3, expected=None, expected_tokens=None))
    said = plain(snapshot_sentence(unknown, 3, found, "cross", 1, 0))
    assert said.startswith("After 1 step of training the model writes `ca`; ")


def test_certainty_is_the_mean_probability_of_the_target() -> None:
    assert certainty(moments(1)[0]) == pytest.approx(0.5)
