"""Softmax with every fill against torch, losses against torch, differences and forbidden weight by identities."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from transformer_viz import decode
from transformer_viz.analysis.loss import losses
from transformer_viz.analysis.mask_parts import forbidden_weight, mask_parts, most_forbidden
from transformer_viz.analysis.softmax import FILLS, PRECISIONS, empty_row, softmax
from transformer_viz.errors import OptionError
from transformer_viz.model.attention import masked_softmax

DTYPES = {"float32": torch.float32, "float16": torch.float16}
scores_and_masks = st.tuples(
    hnp.arrays(np.float32, (3, 5), elements=st.floats(-40, 40, width=16)), hnp.arrays(np.bool_, (3, 5))
)


def as_torch_does_it(scores: np.ndarray, masked: np.ndarray, fill: str, precision: str) -> np.ndarray:
    x, m = torch.tensor(scores, dtype=DTYPES[precision]), torch.tensor(masked)
    # torch refuses to write -1e9 into float16; the published additive masks get -inf there.
    value = float("-inf") if fill == "-inf" or precision == "float16" else -1e9
    weights = x.masked_fill(m, value).softmax(-1)
    return (weights.masked_fill(m, 0.0) if fill == "re-zeroed" else weights).float().numpy()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("fill", FILLS)
@given(scores_and_masks)
def test_softmax_is_torchs(fill, precision, given_arrays):
    scores, masked = given_arrays
    ours = softmax(scores, masked, fill, precision).weights
    np.testing.assert_allclose(
        ours, as_torch_does_it(scores, masked, fill, precision), atol=1e-6 if precision == "float32" else 2e-3
    )


@given(scores_and_masks)
def test_minus_infinity_and_zeros_is_what_the_model_does(given_arrays):
    scores, masked = given_arrays
    ours = masked_softmax(torch.tensor(scores), torch.tensor(masked)).numpy()
    re_zeroed = np.where(masked, 0, np.nan_to_num(softmax(scores, masked).weights))
    np.testing.assert_allclose(re_zeroed, ours, atol=1e-6)


def test_what_becomes_of_an_empty_row():
    scores = np.array([3.0, -1.0, 0.5], dtype=np.float32)
    assert empty_row(scores, "-inf", "float32") == empty_row(scores, "-1e9", "float16") == "NaN"
    assert "1/3 each" in empty_row(scores, "-1e9", "float32")
    assert empty_row(scores, "re-zeroed", "float16").startswith("all 0")
    with pytest.raises(OptionError, match="-inf, -1e9, re-zeroed"):
        softmax(scores, scores > 0, "nothing")  # ty: ignore[invalid-argument-type]
    with pytest.raises(OptionError, match="float32, float16"):
        softmax(scores, scores > 0, "-inf", "float8")  # ty: ignore[invalid-argument-type]


def test_loss_is_torchs_with_ignore_index(tiny):
    texts, targets = ["hello", "a", "bad"], ["oll", "abcdeh", "e"]
    traces = decode(tiny, texts, target=targets, pad_target_to=9)
    found = losses(traces)
    vocabulary = tiny.task.target_vocabulary
    source = torch.zeros(3, 7, dtype=torch.long)
    target_in, target_out = torch.zeros(3, 9, dtype=torch.long), torch.zeros(3, 9, dtype=torch.long)
    for i, (text, target) in enumerate(zip(texts, targets, strict=True)):
        source[i, : len(text) + 2] = torch.tensor(vocabulary.encode(["<start>", *text, "<end>"]))
        target_in[i, : len(target) + 1] = torch.tensor(vocabulary.encode(["<start>", *target]))
        target_out[i, : len(target) + 1] = torch.tensor(vocabulary.encode([*target, "<end>"]))
    padding = torch.arange(9) >= torch.tensor([len(t) + 1 for t in targets])[:, None]
    logits = tiny.network(source, target_in, source == 0, padding)
    flat = logits.flatten(0, 1), target_out.flatten()
    assert found.loss == pytest.approx(float(F.cross_entropy(*flat, ignore_index=0)), abs=1e-6)
    assert found.loss_with_padding == pytest.approx(float(F.cross_entropy(*flat)), abs=1e-6)
    right = logits.argmax(-1) == target_out
    assert found.accuracy == pytest.approx(float(right[~padding].float().mean()))
    assert found.accuracy_with_padding == pytest.approx(float(right.float().mean()))
    assert found.accuracy_padding_right == pytest.approx(float((right | padding).float().mean()))


def test_the_parts_make_the_whole(tiny):
    trace = decode(tiny, ["hello", "a"], target=["olleh", "a"], pad_to=9, pad_target_to=8)[1]
    encoder, padding, causal, combined, cross = mask_parts(trace)
    np.testing.assert_array_equal(padding.reasons | causal.reasons, combined.reasons)
    np.testing.assert_array_equal(combined.reasons, trace.decoder.reasons)
    assert [int((part.reasons > 0).sum()) for part in (encoder, padding, causal, cross)] == [9 * 6, 8 * 6, 28, 8 * 6]
    assert encoder.keys == cross.keys == trace.source_tokens
    assert combined.queries == cross.queries == trace.target_tokens


def test_the_head_that_looks_most_at_what_it_must_not_see(tiny):
    right = decode(tiny, "hello", target="olleh")
    assert most_forbidden(right, right) is None
    wrong = decode(tiny, "hello", target="olleh", mistake="no-causal")
    # By hand: the share of the decoder's weights above the diagonal, over the rows that have a later token.
    shares = np.triu(wrong.decoder.weights, 1)[:, :, :-1].sum(-1).mean(-1)
    found = most_forbidden(right, wrong)
    assert found is not None
    kind, layer, head, share = found
    assert kind == "decoder"
    assert (layer, head) == np.unravel_index(shares.argmax(), shares.shape)
    assert share == pytest.approx(float(shares.max()), abs=1e-6)


def test_forbidden_weight_is_nothing_until_a_mask_is_off(tiny):
    texts = ["hello", "a"]
    right = decode(tiny, texts, target=["olleh", "a"], pad_to=7, pad_target_to=6)
    assert forbidden_weight(right, right) == ("encoder", 0.0)
    wrong = decode(tiny, texts, target=["olleh", "a"], pad_to=7, pad_target_to=6, mistake="source-mask-forgotten")
    found = forbidden_weight(right, wrong)
    assert found is not None
    kind, share = found
    assert kind == "cross"
    # By hand: only the second sentence has padded source keys, 4 of 7, and 2 real steps.
    assert share == pytest.approx(float(wrong[1].cross.weights[:, :, :2, 3:].sum(-1).mean()), abs=1e-6)
