"""What people hand over first: a model's own attentions, as `output_attentions` and `generate` return them."""

from typing import Any

import numpy as np
import pytest
import torch

import transformer_viz as tv
from transformer_viz.errors import TraceError


def weights(n_queries: int, n_keys: int, rows: int = 1, seed: int = 0) -> torch.Tensor:
    scores = torch.randn(rows, 2, n_queries, n_keys, generator=torch.Generator().manual_seed(seed))
    future = torch.arange(n_keys)[None] > torch.arange(n_queries)[:, None] + n_keys - n_queries
    return scores.masked_fill(future, float("-inf")).softmax(-1)


@pytest.mark.parametrize(
    "change", [lambda w: w.bfloat16(), lambda w: w.requires_grad_(), lambda w: w.half(), lambda w: w.double()]
)
def test_tensors_of_every_type_and_with_gradients(change):
    given = tuple(change(weights(4, 4, seed=layer)) for layer in range(3))
    trace = tv.Trace.from_arrays(decoder=given, target_tokens=list("abcd"))
    want = torch.cat([weights(4, 4, seed=layer) for layer in range(3)]).numpy()
    np.testing.assert_allclose(trace.decoder.weights, want, atol=5e-3)


@pytest.mark.parametrize("given", [(), (None, None), []])
def test_what_a_fused_kernel_returns_is_answered_with_the_line_that_helps(given):
    for make in (lambda: tv.Trace.from_arrays(decoder=given, target_tokens=["a"]), lambda: tv.show(given, ["a"])):
        with pytest.raises(TraceError, match=r"attn_implementation='eager'.*output_attentions=True.*tv\.wrap"):
            make()


def test_the_steps_of_generate_become_one_run():
    steps = tuple(
        tuple(weights(3 if step == 0 else 1, 3 + step, seed=7 * step + layer) for layer in range(2)) for step in range(3)
    )
    for trace in (tv.Trace.from_arrays(decoder=steps, target_tokens=list("abcde")), tv.show(steps, list("abcde"))):
        assert trace.decoder.weights.shape == (2, 2, 5, 5)
        for step in range(3):
            for layer in range(2):
                rows = slice(0, 3) if step == 0 else slice(2 + step, 3 + step)
                np.testing.assert_array_equal(trace.decoder.weights[layer][:, rows, : 3 + step], steps[step][layer][0].numpy())
        assert trace.decoder.mask.tolist() == np.triu(np.ones((5, 5), bool), 1).tolist()


def test_beams_are_followed_by_their_indices():
    cross = tuple(tuple(weights(1, 4, rows=3, seed=9 * step + layer).softmax(-1) for layer in range(2)) for step in range(4))
    indices = torch.tensor([[0, 2, 1, -1]])
    options: dict[str, Any] = {"cross": cross, "source_tokens": list("wxyz"), "target_tokens": list("abc")}
    trace = tv.Trace.from_arrays(**options, beam_indices=indices)
    for step, row in enumerate([0, 2, 1]):
        np.testing.assert_array_equal(trace.cross.weights[1, :, step], cross[step][1][row, :, 0].numpy())
    with pytest.raises(TraceError, match=r"3 rows in step 0.*beam_indices=out\.beam_indices"):
        tv.Trace.from_arrays(**options)


def test_what_generate_returns_is_what_one_pass_returns():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {
        "vocab_size": 23,
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_ffn_dim": 8,
        "decoder_ffn_dim": 8,
    }
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "pad_token_id": 1, "decoder_start_token_id": 2}
    config = transformers.BartConfig(**sizes, **heads, eos_token_id=22, forced_eos_token_id=None, attn_implementation="eager")
    model, ids = transformers.BartForConditionalGeneration(config).eval(), torch.tensor([[5, 6, 7, 8]])
    out = model.generate(ids, num_beams=3, max_length=6, output_attentions=True, return_dict_in_generate=True)
    n = int((out.beam_indices[0] >= 0).sum())
    with torch.no_grad():
        one = model(ids, decoder_input_ids=out.sequences[:, :n], output_attentions=True)
    tokens: dict[str, Any] = {"source_tokens": list("abcd"), "target_tokens": list(map(str, out.sequences[0, :n].tolist()))}
    for given in (out, one):
        trace = tv.Trace.from_arrays(
            encoder=given.encoder_attentions,
            cross=given.cross_attentions,
            beam_indices=getattr(given, "beam_indices", None),
            **tokens,
        )
        np.testing.assert_allclose(trace.cross.weights, torch.cat(one.cross_attentions).numpy(), atol=1e-5)


def test_one_line_shows_attention_and_its_tokens():
    causal, every = weights(4, 4), weights(4, 4).mT.softmax(-1)
    assert tv.show(causal, list("abcd")).kinds == ("decoder",)
    assert tv.show(causal, list("abcd")).decoder.mask.any()
    assert tv.show(every, list("abcd")).kinds == ("encoder",)
    assert tv.show(every, list("abcd"), list("wxyz")).kinds == ("cross",)
    assert tv.show(causal, list("abcd"), kind="encoder").kinds == ("encoder",)
    assert "iframe" in str(tv.show(causal, list("abcd"))._repr_html_())


def test_what_one_line_cannot_show_says_what_to_write():
    causal = weights(4, 4)
    trace = tv.show(causal, list("abcd"))
    assert tv.show(trace) is trace
    with pytest.raises(TraceError, match=r"tokens are missing.*tv\.show\(attention, tokens\)"):
        tv.show(causal)
    with pytest.raises(TraceError, match=r"tv\.show\(attention, target_tokens, source_tokens\)"):
        tv.show(causal, (list("abcd"), list("wxyz")))  # ty: ignore
