"""Tiny random models of the families that are served, and a tokenizer for them, made here: nothing is downloaded.

Weights are ten times as large as models begin with, so that attention is far from flat, and the end's logit is made larger,
so that about half of what is written ends.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

import torch

from tests.needs import slow
from transformer_viz.readers.huggingface.loading import HuggingFaceModel, wrap_model

SPECIAL = ("<pad>", "<s>", "</s>", "<unk>", "[MASK]")
PAD, BOS, EOS = 0, 1, 2
WORDS = (*SPECIAL, *(f"w{i}" for i in range(42)))
SIZE = len(WORDS)
TEXTS = ("w1 w2 w3 w4 w5 w6", "w7 w8", "w9 w1 w9 w2")
N_WRITTEN = 9
SHARED = {"vocab_size": SIZE, "pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS}
BART: dict[str, Any] = SHARED | {
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "max_position_embeddings": 64,
    "decoder_start_token_id": EOS,
}
T5: dict[str, Any] = SHARED | {
    "d_model": 24,
    "d_kv": 7,
    "d_ff": 40,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": PAD,
}
LLAMA: dict[str, Any] = SHARED | {
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
WINDOWED: dict[str, Any] = LLAMA | {"head_dim": 8, "sliding_window": 4, "num_hidden_layers": 4}
GEMMA: dict[str, Any] = WINDOWED | {"query_pre_attn_scalar": 8}
BERT: dict[str, Any] = SHARED | {
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
}

ENCODER_DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "marian": ("MarianMTModel", BART | {"decoder_start_token_id": PAD, "forced_eos_token_id": EOS}),
    "t5": ("T5ForConditionalGeneration", T5),
    "mt5": ("MT5ForConditionalGeneration", T5),
    "umt5": ("UMT5ForConditionalGeneration", T5),
    "bart": ("BartForConditionalGeneration", BART | {"forced_bos_token_id": BOS, "forced_eos_token_id": EOS}),
    "mbart": ("MBartForConditionalGeneration", BART | {"forced_eos_token_id": EOS}),
    "m2m_100": ("M2M100ForConditionalGeneration", BART),
    "pegasus": ("PegasusForConditionalGeneration", BART | {"decoder_start_token_id": PAD, "forced_eos_token_id": EOS}),
    "switch_transformers": (
        "SwitchTransformersForConditionalGeneration",
        T5 | {"num_experts": 3, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1},
    ),
    "nllb-moe": (
        "NllbMoeForConditionalGeneration",
        BART | {f"{side}_sparse_step": 2 for side in ("encoder", "decoder")} | {"num_experts": 3},
    ),
    "t5gemma": (
        "T5GemmaForConditionalGeneration",
        SHARED | {"encoder": GEMMA, "decoder": GEMMA | {"num_hidden_layers": 2}, "decoder_start_token_id": BOS},
    ),
    "blenderbot": ("BlenderbotForConditionalGeneration", BART | {"decoder_start_token_id": BOS, "forced_eos_token_id": EOS}),
}
DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", SHARED | {"n_embd": 24, "n_layer": 3, "n_head": 4, "n_positions": 64}),
    "opt": (
        "OPTForCausalLM",
        BERT | {"ffn_dim": 40, "word_embed_proj_dim": 24},
    ),
    "gpt_neox": ("GPTNeoXForCausalLM", BERT),
    "llama": ("LlamaForCausalLM", LLAMA),
    "mistral": ("MistralForCausalLM", LLAMA | {"sliding_window": 4}),
    "qwen2": ("Qwen2ForCausalLM", LLAMA),
    "gemma2": ("Gemma2ForCausalLM", WINDOWED),
    "gemma3_text": ("Gemma3ForCausalLM", WINDOWED | {"layer_types": ["sliding_attention", "full_attention"] * 2}),
}
ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertForMaskedLM", BERT),
    "roberta": ("RobertaForMaskedLM", BERT),
    "distilbert": ("DistilBertForMaskedLM", SHARED | {"dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 40}),
    "electra": ("ElectraForMaskedLM", BERT | {"embedding_size": 16}),
    "albert": ("AlbertForMaskedLM", BERT | {"embedding_size": 16}),
    # Every third layer sees all, and the others two tokens to each side.
    "modernbert": ("ModernBertForMaskedLM", BERT | {"local_attention": 4, "global_attn_every_n_layers": 3}),
}
WRITERS = ENCODER_DECODERS | DECODERS
ALL = WRITERS | ENCODERS
FIRST = {"marian", "t5", "gpt2", "gemma2", "bert", "modernbert"}
"""Two of each kind, unlike each other."""


def cases(names: Iterable[str]) -> list[Any]:
    """The cases of a test that goes through families: those that are not among the first are slow."""
    return [name if name in FIRST else slow(name) for name in names]


def tokenizer(*, ends: bool = False) -> Any:
    """Words by spaces; where `ends`, a text is followed by the end, as for encoders."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if ends:
        made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", EOS)])
    named = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token", "mask_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=made, **named)


def untapped(name: str, seed: int = 1, raised: float = 2.5, **changes: Any) -> Any:
    """A random model of a family, in eval mode and in float32, with the attention that its authors gave it."""
    import transformers

    class_name, config = ALL[name]
    made = getattr(transformers, class_name)
    torch.manual_seed(seed)
    model = made(made.config_class(**{**config, **changes})).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_(0, 0.25)

    def end_raised(module: Any, given: Any, output: Any) -> None:
        output.logits[..., EOS] *= raised

    model.register_forward_hook(end_raised)
    return model


@cache
def family(name: str) -> HuggingFaceModel:
    """A model of a family, as it is loaded."""
    return wrap_model(untapped(name), tokenizer(ends=name not in DECODERS), name)


@cache
def own(name: str) -> Any:
    """The same model, with its own eager attention: what ours is compared with."""
    model = untapped(name)
    model.set_attn_implementation("eager")
    return model
