"""Why this token and not that one, and a number of one's own: against plain passes through the model."""

from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from transformer_viz.errors import OptionError


def test_occlusion_against_another_token_is_the_difference_of_both(tiny: tv.Checkpoint, hello: tv.Trace) -> None:
    """Each token's own number is the same method with a score of this token alone."""
    [other] = tiny.tokenizer.ids_of("token", ["a"])
    for method in ("occlusion", "gradient"):
        contrast = tv.attribute(tiny, hello, method, against="a").values
        by_hand = tv.attribute(
            tiny, hello, method, score=lambda p, y: p.gather(-1, y.expand(len(p), -1)[..., None])[..., 0] - p[..., other]
        )
        np.testing.assert_allclose(contrast, by_hand.values, atol=1e-12)
        assert by_hand.unit == "" and not np.allclose(contrast, tv.attribute(tiny, hello, method).values)
    written, rival = (
        tv.attribute(tiny, hello, "occlusion", score=score).values
        for score in (lambda p, y: p.gather(-1, y.expand(len(p), -1)[..., None])[..., 0], lambda p, y: p[..., other])
    )
    np.testing.assert_allclose(tv.attribute(tiny, hello, "occlusion", against="a").values, written - rival, atol=1e-9)
    np.testing.assert_allclose(tv.attribute(tiny, hello, "occlusion").values, written, atol=1e-9)


def test_a_token_for_each_step_and_itself_is_nothing(tiny: tv.Checkpoint, hello: tv.Trace) -> None:
    itself = tv.attribute(tiny, hello, "occlusion", against=hello.output_tokens)
    np.testing.assert_array_equal(itself.values, np.zeros_like(itself.values))
    assert itself.notes["against"] == list(hello.output_tokens)


def test_what_cannot_be_explained_is_refused(tiny: tv.Checkpoint, hello: tv.Trace) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"method": "rollout", "against": "a"}, "rollout does not look at what is written.*choose one of occlusion, gradient"),
        ({"method": "occlusion", "against": ["a"]}, "against has 1 tokens for"),
        ({"method": "occlusion", "against": "a", "score": lambda p, y: p[..., 0]}, "give one of them"),
    ]
    for options, words in cases:
        with pytest.raises(OptionError, match=words):
            tv.attribute(tiny, hello, **options)
