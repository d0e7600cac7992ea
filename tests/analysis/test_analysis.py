"""Sentences and scores against brute force and planted answers."""

from typing import Any

import numpy as np

from tests.attentions import unmasked
from tests.sentences import step_sentence
from transformer_viz.analysis.sentences import plain
from transformer_viz.trace.steps import Step
from transformer_viz.trace.trace import Trace

SOURCE = ("<start>", *"hello", "<end>")
OUTPUT = (*"olleh", "<end>")


def planted(weights: np.ndarray | None = None, output: tuple[str, ...] = OUTPUT, **changes: Any) -> Trace:
    """`hello` with two layers of three heads; head (1, 2) looks at the true key, the others everywhere."""
    alignment = (5, 4, 3, 2, 1, None)
    if weights is None:
        weights = np.full((2, 3, 6, 7), 1 / 7, dtype=np.float32)
        weights[1, 2] = 0
        for t, key in enumerate(alignment):
            weights[1, 2, t, 6 if key is None else key] = 1
    steps = tuple(Step(token=x, probability=0.9991, log_probability=-0.0009, rank=0, candidates=((x, 0.9991),)) for x in output)
    fields: dict[str, Any] = {
        "source": "hello",
        "text": "olleh",
        "source_tokens": SOURCE,
        "target_tokens": ("<start>", *output[:-1]),
        "output_tokens": output,
        "steps": steps,
        "attentions": {"cross": unmasked(weights)},
        "finished": "end",
        "alignment": alignment,
        "source_letters": (None, 0, 1, 2, 3, 4, None),
        "expected": "olleh",
        "expected_tokens": OUTPUT,
    }
    return Trace(**{**fields, **changes})


def test_the_sentence_of_the_design() -> None:
    weights = np.zeros((1, 2, 6, 7), dtype=np.float32)
    weights[0, 1, 2, 3], weights[0, 1, 2, 4] = 0.96, 0.04
    said = plain(step_sentence(planted(weights), "cross", 0, 1, 2))
    assert (
        said
        == "Step 3 of 6: having written `ol`, layer 1 head 2 looks 96 % at `l` (token 4) and the model writes `l`, p = 0.999."
    )


def test_a_row_of_zeros_looks_at_nothing() -> None:
    said = plain(step_sentence(planted(np.zeros((1, 2, 6, 7), dtype=np.float32)), "cross", 0, 0, 1))
    assert "may look at nothing" in said


def test_a_wrong_letter_says_which_is_right_unless_the_answer_is_hidden() -> None:
    wrong = planted(output=("o", "x", "l", "e", "h", "<end>"))
    assert "writes `x`" in plain(step_sentence(wrong, "cross", 0, 0, 1))
    assert "The right token: `l`." in plain(step_sentence(wrong, "cross", 0, 0, 1))
    assert "Expected" not in plain(step_sentence(wrong, "cross", 0, 0, 1, with_answer=False))
    assert "Expected" not in plain(step_sentence(wrong, "cross", 0, 0, 2))
