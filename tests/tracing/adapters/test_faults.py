"""Weights that no Trace can hold are refused with their true reason, and with advice that leads somewhere."""

from typing import Any

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")

from torch import Tensor, nn  # noqa: E402

from tests.readers.families import untapped  # noqa: E402
from transformer_viz import Trace, trace_module  # noqa: E402
from transformer_viz.errors import OptionError  # noqa: E402

IDS = [2, 8, 4, 6]
SIZES: dict[str, Any] = {"vocab_size": 23, "hidden_size": 16, "intermediate_size": 8, "num_hidden_layers": 2}
HEADS: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 1, "bos_token_id": 0}


def test_a_learned_sink_is_the_reason_and_the_advice_works():
    config = transformers.GptOssConfig(**SIZES, **HEADS, head_dim=4, num_local_experts=2, num_experts_per_tok=1)
    model = transformers.GptOssForCausalLM(config)
    with pytest.raises(OptionError) as caught:
        trace_module(model, None, IDS)
    for part in (
        "decoder attention of model.layers.0.self_attn (GptOssAttention)",
        "16 of 16 rows that do not sum to 1",
        "a learned sink (sinks, one number for each head) takes part of each row",
        "5 columns for 4 keys",
        "Trace.from_arrays(decoder=…, normalised=False)",
    ):
        assert part in str(caught.value), str(caught.value)
    assert "dropout" not in str(caught.value)
    model.eval().set_attn_implementation("eager")
    with torch.no_grad():
        given = model(torch.tensor([IDS]), output_attentions=True).attentions
    trace = Trace.from_arrays(decoder=given, target_tokens=list(map(str, IDS)), normalised=False)
    assert (trace.decoder.weights.sum(-1) < 0.99).all()


def test_a_sink_that_scales_the_output_is_one_too():
    """Granite's weights sum to 1, and its output is scaled after them: the same sink, in another form."""
    config = transformers.GraniteSWAConfig(**SIZES, **HEADS, sliding_window=8)
    with pytest.raises(OptionError, match=r"does not give its output.*a learned sink \(sinks, .*from_arrays\(decoder=…\)$"):
        trace_module(transformers.GraniteSWAForCausalLM(config), None, IDS)


def scores_of(query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
    return query @ key.mT / query.shape[-1] ** 0.5 + mask


FAULTS = {
    "dropout": (
        lambda s: nn.functional.dropout(s.softmax(-1), 0.5, True),
        r"changed after the softmax, by dropout or a factor",
    ),
    "sigmoid": (lambda s: s.sigmoid(), r"do not sum to 1, first .* it makes them without a softmax"),
    "sink": (
        lambda s: torch.cat([s, torch.zeros_like(s[..., :1])], -1).softmax(-1)[..., :-1],
        r"; a sink takes part of each row: the softmax goes over 5 columns for 4 keys",
    ),
    "nan": (lambda s: s.softmax(-1) * torch.nan, r"is not finite, first at \[0, 0, 0\] \(head, query, key\)"),
    "negative": (lambda s: 2 * s.softmax(-1) - s.softmax(-1).mean(-1, keepdim=True), r"has negative weights"),
    "its mask unused": (
        lambda s: torch.ones_like(s).softmax(-1),
        r"has weight on 24 cells that the mask it was given hides, first at \[0, 0, 1\]",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_says_its_own_reason(name, monkeypatch):
    """GPT-2 with another attention in the place of its own; nothing speaks of a keyword that `trace_module` has not."""
    from transformers.models.gpt2 import modeling_gpt2

    weights_of, reason = FAULTS[name]

    def eager(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, **options: Any) -> Any:
        weights = weights_of(scores_of(query, key, mask))
        return (weights @ value).transpose(1, 2), weights

    monkeypatch.setattr(modeling_gpt2, "eager_attention_forward", eager)
    with pytest.raises(OptionError, match=reason) as caught:
        trace_module(untapped("gpt2"), None, IDS)
    assert "decoder attention of transformer.h.0.attn (GPT2Attention)" in str(caught.value)
    assert "masks=" not in str(caught.value)
    assert "~mask" not in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_half_precision_is_no_fault(dtype):
    trace = trace_module(untapped("gpt2").to(dtype), None, IDS)
    np.testing.assert_allclose(trace.decoder.weights.sum(-1), 1, atol=5e-3)
