"""Tiny models of Hugging Face's families with random weights, in every precision, as their users call them."""

import copy
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from tests.mask_checks.zoo.parts import PAD, Cases, Model, V

HUGGING_FACE = Cases()

IDS: dict[str, Any] = {"vocab_size": V, "pad_token_id": PAD, "bos_token_id": 1, "eos_token_id": 2}
BOTH: dict[str, Any] = {
    **IDS,
    "d_model": 16,
    "decoder_start_token_id": PAD,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "max_position_embeddings": 40,
}
ONE: dict[str, Any] = {
    **IDS,
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}


@cache
def built(name: str) -> Any:
    """In evaluation mode, with its own random weights."""
    import transformers as hf

    torch.manual_seed(5)
    t5 = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": PAD}
    makes = {
        "bart": lambda: hf.BartForConditionalGeneration(hf.BartConfig(**BOTH)),
        "marian": lambda: hf.MarianMTModel(hf.MarianConfig(**BOTH)),
        "t5": lambda: hf.T5ForConditionalGeneration(hf.T5Config(**IDS, **t5)),
        "gpt2": lambda: hf.GPT2LMHeadModel(hf.GPT2Config(**IDS, n_positions=40, n_embd=16, n_layer=1, n_head=2)),
        "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**ONE)),
        "mixtral": lambda: hf.MixtralForCausalLM(hf.MixtralConfig(**ONE, num_local_experts=3, num_experts_per_tok=2)),
    }
    return makes[name]().eval().requires_grad_(False)


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
            mask = (
                torch.where(real[:, None, None], 0.0, torch.finfo(model.dtype).min)
                .to(model.dtype)
                .expand(-1, 1, ids.shape[1], -1)
            )
        places = (real.cumsum(1) - 1).clamp_min(0)
        return model(input_ids=ids, attention_mask=mask, position_ids=places).logits[:, source.shape[1] :]

    return f


CALLED = {"bart": encoder_decoder, "marian": encoder_decoder, "t5": encoder_decoder}


def in_type(family: str, dtype: str, **options: Any) -> Model:
    """A model of this family in this precision, called as its users call it."""
    model = copy.deepcopy(built(family)).to(getattr(torch, dtype))
    return CALLED.get(family, decoder_only)(model, **options)


SOUND = {
    "t5": ("float32", "float16"),
    "bart": ("float64", "bfloat16"),
    "marian": ("float32",),
    "gpt2": ("float16",),
    "llama": ("float32", "bfloat16"),
    "mixtral": ("bfloat16",),
}
for family, dtypes in SOUND.items():
    for dtype in dtypes:
        HUGGING_FACE.put(f"{family}_in_{dtype}", partial(in_type, family, dtype))
for family in ("bart", "llama"):
    HUGGING_FACE.put(
        f"{family}_that_reads_padding", partial(in_type, family, "bfloat16", knows_padding=False), "source padding"
    )


@HUGGING_FACE.models("future")
def llama_with_a_mask_that_opens_all() -> Model:
    return decoder_only(built("llama"), is_causal=False)


@HUGGING_FACE.models("future")
def t5_whose_decoder_is_never_masked() -> Model:
    model = copy.deepcopy(built("t5"))
    model.decoder.config.is_decoder = False
    for block in model.decoder.block:
        block.layer[0].SelfAttention.is_decoder = False

    def f(source: Tensor, target: Tensor) -> Tensor:
        open_to_all = torch.zeros(len(target), 1, target.shape[1], target.shape[1])
        mask = (source != PAD).long()
        return model(input_ids=source, attention_mask=mask, decoder_input_ids=target, decoder_attention_mask=open_to_all).logits

    return f


@HUGGING_FACE.models("future")
def marian_with_one_open_head_in_bfloat16() -> Model:
    model = copy.deepcopy(built("marian")).bfloat16()
    attention = model.model.decoder.layers[0].self_attn
    plain = attention.forward

    def opened(hidden_states: Tensor, *args: Any, attention_mask: Tensor | None = None, **options: Any) -> Any:
        n = hidden_states.shape[1]
        may_look = torch.ones(n, n).tril().bool() | torch.tensor([True, False])[:, None, None]
        return plain(hidden_states, *args, attention_mask=may_look.expand(len(hidden_states), -1, -1, -1), **options)

    attention.forward = opened
    return encoder_decoder(model, use_cache=False)
