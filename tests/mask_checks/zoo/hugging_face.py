"""Tiny models of Hugging Face's families with random weights, in every precision, as their users call them."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from tests.mask_checks.zoo.parts import PAD, Cases, Model
from tests.readers import families

HUGGING_FACE = Cases()
BOTH = {"encoder_layers": 1, "decoder_layers": 1}
ONE_LAYER: dict[str, dict[str, int]] = {
    "bart": BOTH,
    "marian": BOTH,
    "t5": {"num_layers": 1, "num_decoder_layers": 1},
    "gpt2": {"n_layer": 1},
    "llama": {"num_hidden_layers": 1},
}


def built(family: str, dtype: str = "float32") -> Any:
    """A model of one layer."""
    return families.untapped(family, **ONE_LAYER[family]).to(getattr(torch, dtype))


def encoder_decoder(model: Any, *, knows_padding: bool = True, **more: Any) -> Model:
    """(source, target) to logits, with or without the mask for padding."""

    def f(source: Tensor, target: Tensor) -> Tensor:
        mask = (source != PAD).long() if knows_padding else torch.ones_like(source)
        return model(input_ids=source, attention_mask=mask, decoder_input_ids=target, **more).logits

    return f


def decoder_only(model: Any, *, knows_padding: bool = True, is_causal: bool = True) -> Model:
    """Source and target as one sequence; the logits of the target's part."""

    def f(source: Tensor, target: Tensor) -> Tensor:
        ids = torch.cat([source, target], 1)
        real = torch.cat([source != PAD, torch.ones_like(target).bool()], 1) if knows_padding else torch.ones_like(ids).bool()
        mask = real.long()
        if not is_causal:
            opened = torch.where(real[:, None, None], 0.0, torch.finfo(model.dtype).min)
            mask = opened.to(model.dtype).expand(-1, 1, ids.shape[1], -1)
        places = (real.cumsum(1) - 1).clamp_min(0)
        return model(input_ids=ids, attention_mask=mask, position_ids=places).logits[:, source.shape[1] :]

    return f


def called(family: str, dtype: str, **options: Any) -> Model:
    """A model of this family in this precision, called as its users call it."""
    return (decoder_only if family in families.DECODERS else encoder_decoder)(built(family, dtype), **options)


SOUND = ("t5 float16", "bart bfloat16", "gpt2 float16", "llama bfloat16")
HUGGING_FACE.cases({name.replace(" ", "_in_"): partial(called, *name.split()) for name in SOUND})
HUGGING_FACE.cases(
    {f"{name}_that_reads_padding": partial(called, name, "bfloat16", knows_padding=False) for name in ("bart", "llama")},
    "source padding",
)


@HUGGING_FACE.case("future")
def llama_with_a_mask_that_opens_all() -> Model:
    return decoder_only(built("llama"), is_causal=False)


@HUGGING_FACE.case("future")
def marian_with_one_open_head_in_bfloat16() -> Model:
    model = built("marian", "bfloat16")
    attention = model.model.decoder.layers[0].self_attn
    plain = attention.forward

    def opened(hidden_states: Tensor, *args: Any, attention_mask: Tensor | None = None, **options: Any) -> Any:
        n = hidden_states.shape[1]
        may_look = torch.ones(n, n).tril().bool() | torch.tensor([True, False, False])[:, None, None]
        return plain(hidden_states, *args, attention_mask=may_look.expand(len(hidden_states), -1, -1, -1), **options)

    attention.forward = opened
    return encoder_decoder(model, use_cache=False)


@HUGGING_FACE.case()
def mixtral_in_bfloat16() -> Model:
    """What multiplies its experts knows no float64."""
    import transformers

    torch.manual_seed(5)
    experts: dict[str, Any] = {"num_hidden_layers": 1, "num_local_experts": 3, "num_experts_per_tok": 2}
    model = transformers.MixtralForCausalLM(transformers.MixtralConfig(**families.LLAMA | experts))
    return decoder_only(model.bfloat16().eval().requires_grad_(False))
