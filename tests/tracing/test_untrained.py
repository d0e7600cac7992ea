"""The untrained baseline: other parameters, everything else the same."""

from typing import Any

import numpy as np
import pytest
import torch

from transformer_viz import decode, decode_untrained
from transformer_viz.addresses import HeadAddress
from transformer_viz.analysis import alignment
from transformer_viz.errors import OptionError
from transformer_viz.model.mistakes import MISTAKES
from transformer_viz.model.transformer import Transformer
from transformer_viz.terms import KINDS


def test_it_has_other_parameters_and_grades_that_are_its_own(tiny, hello):
    fresh: Any = decode_untrained(tiny, hello)
    for kind in KINDS:
        assert np.abs(hello.attentions[kind].weights - fresh.attentions[kind].weights).max() > 0.01
    graded = alignment(hello, fresh)
    for grade in graded:
        own = alignment(fresh).at(HeadAddress(grade.kind, grade.layer, grade.head))
        for name in ("mass", "hit_rate", "entropy", "entropy_share", "distance"):
            assert getattr(grade.untrained, name) == getattr(own, name)


def test_the_parameters_are_those_of_a_model_made_with_the_seed(tiny, make_tiny, hello):
    """And the state of the process stays."""
    torch.manual_seed(11)
    model = Transformer(tiny.network.config).double().eval().requires_grad_(False)
    want: Any = decode(make_tiny(model), "hello", target=hello.output_tokens[:-1])
    torch.manual_seed(3)
    expected = torch.rand(5)
    torch.manual_seed(3)
    got, other = (decode_untrained(tiny, hello, seed=seed) for seed in (11, 2))
    assert torch.equal(torch.rand(5), expected)
    for kind in KINDS:
        np.testing.assert_allclose(got.attentions[kind].weights, want.attentions[kind].weights, atol=1e-6)
    assert np.abs(got.cross.weights - other.cross.weights).max() > 0.01
    assert next(iter(tiny.network.parameters())).dtype == torch.float64


@pytest.mark.parametrize(
    "options",
    [
        {"max_length": 3},
        {"edits": ["cross:2-3", "decoder.1.2:2=1"]},
        {"mistake": next(iter(MISTAKES))},
        {"pad_to": 11},
        {"target": "ab", "pad_to": 11, "pad_target_to": 7},
        {"strategy": "beam", "beam_size": 3},
        {"target": ("<pad>", "h", "<pad>", "e")},
        {"target": ()},
    ],
    ids=str,
)
def test_whatever_the_run_was_its_tokens_and_masks_are_kept(tiny, options: Any):
    """Guards a run stopped by the limit, a written `<pad>`, padding that was kept, and an output of the end alone."""
    run = decode(tiny, "hello", **options)
    fresh = decode_untrained(tiny, run)
    assert (fresh.source_tokens, fresh.target_tokens) == (run.source_tokens, run.target_tokens)
    assert (fresh.edits, fresh.mistake) == (run.edits, run.mistake)
    for kind in KINDS:
        np.testing.assert_array_equal(run.attentions[kind].mask, fresh.attentions[kind].mask)
    assert len(alignment(run, fresh)) == 2 * 5 + 3 * 5 + 3 * 5


@pytest.mark.parametrize("seed", [-1, True, 1.0, 2**64])
def test_impossible_seeds(tiny, hello, seed):
    with pytest.raises(OptionError, match="seed="):
        decode_untrained(tiny, hello, seed=seed)
