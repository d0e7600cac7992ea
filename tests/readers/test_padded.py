"""Batches with their padding kept, of models that are not ours: what is drawn is what their own attention does with it."""

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from tests.readers.families import DECODERS, TEXTS, family, own, tokenizer, untapped
from tests.readers.families import PAD as PAD_ID
from transformer_viz import Trace, decode, decode_batch, decode_forced
from transformer_viz.analysis.loss import losses
from transformer_viz.errors import OptionError
from transformer_viz.readers.huggingface.loading import wrap_model
from transformer_viz.terms import Reason
from transformer_viz.vocabulary import PAD

WIDTH, PADDED = 6, (0, 4, 2)
"""Tokens of the longest text, and padding before or behind each."""
TARGETS = ("w3 w4 w5", "w1", "w2 w2")


def assert_alike(trace: Trace, alone: Trace) -> None:
    assert trace.output_tokens == alone.output_tokens
    for kind in alone.kinds:
        np.testing.assert_allclose(trace.attentions[kind].weights, alone.attentions[kind].weights, atol=1e-5)


@pytest.mark.parametrize("name", ["gpt2", "mistral", "gemma2"])
def test_padding_before_a_prompt_is_drawn_as_the_model_has_it(name: str) -> None:
    model, traces = family(name), decode_batch(family(name), TEXTS)
    windows = model.network.sizes.windows.get("decoder", {})
    for n_left, text, trace in zip(PADDED, TEXTS, traces, strict=True):
        n = trace.n_steps
        assert trace.target_tokens[:n_left] == (PAD,) * n_left
        assert trace.n_given == WIDTH - 1
        assert [step.token for step in trace.steps] == list(trace.output_tokens)
        ids = torch.tensor([[PAD_ID] * n_left + list(trace.target_ids or ())[n_left:]])
        real = torch.arange(n)[None] >= n_left
        places = (real.cumsum(-1) - 1).clamp(min=0)
        with torch.inference_mode():
            theirs = own(name)(ids, attention_mask=real.long(), position_ids=places, output_attentions=True, use_cache=False)
        codes = np.broadcast_to(trace.decoder.reasons, trace.decoder.weights.shape)
        for layer, weights in enumerate(theirs.attentions):
            window = windows.get(layer, n)
            for q in range(n):
                for k in range(n):
                    why = (Reason.PADDING if k < n_left else 0) | (Reason.FUTURE if k > q else 0)
                    why = why or (Reason.WINDOW if q - k >= window else 0)
                    assert (codes[layer, :, q, k] == why).all(), (layer, q, k)
            assert not trace.decoder.weights[layer, :, :n_left].any(), "a padded row looks at nothing"
            np.testing.assert_allclose(trace.decoder.weights[layer, :, n_left:], weights[0, :, n_left:].numpy(), atol=1e-5)
        assert decode(model, text).text.startswith(trace.text), "alone there is room for more"


@pytest.mark.parametrize("name", ["gpt2", "mistral"])
def test_an_edit_in_a_padded_batch_is_that_of_the_text_alone_at_its_own_place(name: str) -> None:
    query, key, n_left = 5, 4, PADDED[1]
    padded = decode_batch(family(name), TEXTS, edits=[f"decoder:{query + 1}-{key + 1}"])[1]
    alone = decode(family(name), TEXTS[1], edits=[f"decoder:{query + 1 - n_left}-{key + 1 - n_left}"])
    unchanged = decode(family(name), TEXTS[1])
    assert padded.output_tokens[n_left:] == alone.output_tokens
    np.testing.assert_allclose(padded.decoder.weights[..., n_left:, n_left:], alone.decoder.weights, atol=1e-5)
    assert (padded.decoder.reasons[..., query, key] == Reason.EDITED).all()
    assert np.abs(alone.decoder.weights[..., 1, 0] - unchanged.decoder.weights[..., 1, 0]).max() > 1e-3


@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma2", "modernbert", "marian"])
def test_texts_of_other_lengths_change_nothing_in_float64(name: str) -> None:
    """Padding before a prompt may see nothing, and many families take the softmax in float32, where float64's least is −∞."""
    model = wrap_model(untapped(name).double(), tokenizer(ends=name not in DECODERS), name)
    for text, trace in zip(TEXTS, decode(model, list(TEXTS), max_length=12), strict=True):
        assert_alike(trace, decode(model, text, max_length=12))
    if name in DECODERS:
        blind = decode(model, TEXTS[0], edits=["decoder:1-1"])
        assert np.isfinite(blind.decoder.weights).all()
        assert not blind.decoder.weights[:, :, 0].any(), "a row that may see nothing is zeros"
        assert all(np.isfinite(step.probability) for step in blind.steps)


@pytest.mark.parametrize(
    ("name", "edit"), [("gpt2", "decoder:off"), ("mistral", "decoder:off"), ("marian", "cross:off"), ("t5", "encoder:off")]
)
def test_a_mask_that_is_off_opens_no_padding_that_no_trace_has(name: str, edit: str) -> None:
    for text, trace in zip(TEXTS, decode(family(name), list(TEXTS), edits=[edit], max_length=8), strict=True):
        assert_alike(trace, decode(family(name), text, edits=[edit], max_length=8))


@pytest.mark.parametrize("name", ["gpt2", "mistral", "t5", "marian"])
def test_targets_in_a_padded_batch_are_read_as_alone(name: str) -> None:
    model = family(name)
    traces = decode_forced(model, TEXTS, TARGETS)
    found = losses(traces)
    for i, (trace, text, target) in enumerate(zip(traces, TEXTS, TARGETS, strict=True)):
        alone = decode(model, text, target=target, record=("weights", "scores"))
        n = len(target.split()) + 1
        expected = [-step.log_probability for step in alone.steps[alone.n_given :]]
        np.testing.assert_allclose(found.per_token[i, :n], expected, atol=1e-4)
        assert found.counted[i].tolist() == [t < n for t in range(trace.n_steps - trace.n_given)]
        assert trace.output_tokens[trace.n_given + n :] == (PAD,) * (trace.n_steps - trace.n_given - n)
        for attention in trace.attentions.values():
            weights, scores = attention.weights, attention.scores
            assert scores is not None
            masked = np.broadcast_to(attention.mask, scores.shape)
            powers = np.where(masked, 0.0, np.exp(scores.astype(np.float64)))
            sums = powers.sum(-1, keepdims=True)
            np.testing.assert_allclose(weights, np.divide(powers, sums, out=np.zeros_like(powers), where=sums > 0), atol=1e-5)


def test_an_encoder_alone_is_padded_behind_and_has_no_target() -> None:
    model = family("bert")
    for trace, n in zip(decode_forced(model, TEXTS), PADDED, strict=True):
        assert trace.source_tokens[WIDTH + 1 - n :] == (PAD,) * n
        expected = np.zeros((WIDTH + 1, WIDTH + 1))
        expected[:, WIDTH + 1 - n :] = Reason.PADDING
        assert (trace.encoder.reasons == expected).all()
        assert trace.kinds == ("encoder",) and trace.encoder.scores is not None
    with pytest.raises(OptionError, match="encoder alone, which writes nothing"):
        decode_forced(model, TEXTS, TARGETS)


def test_a_search_keeps_no_padding_before_a_prompt() -> None:
    with pytest.raises(OptionError, match="leave pad_to out"):
        decode(family("gpt2"), list(TEXTS), strategy="beam", pad_to=WIDTH)


def test_a_search_keeps_a_part_of_layers_that_look_differently_far() -> None:
    model = family("gemma2")
    layer = model.network.sizes.layers["decoder"][-1]
    whole, part = (decode(model, TEXTS[0], strategy="beam", layers=layers) for layers in (None, [layer]))
    np.testing.assert_array_equal(
        np.broadcast_to(part.decoder.reasons, part.decoder.weights.shape),
        np.broadcast_to(whole.decoder.reasons, whole.decoder.weights.shape)[-1:],
    )
