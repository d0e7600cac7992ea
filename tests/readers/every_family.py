"""What becomes here of every family of transformers, tried with a tiny random model where its configuration makes one.

`python -m tests.readers.every_family` prints the table of `docs/families.md`; with names of families after it, of these alone.
"""

import re
import sys
from collections import defaultdict
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import torch

import transformer_viz as tv
from tests.readers import families
from tests.readers.families import BOS, SHARED, SIZE, TEXTS
from tests.readers.test_families import returned, theirs, written
from transformer_viz.errors import ModelError, TransformerVizError
from transformer_viz.readers.huggingface.loading import HuggingFaceModel, classes_of, quiet_transformers, wrap_model
from transformer_viz.text_display import shorten

N_WRITTEN = 6
N_SEEN = 4
"""How far a window reaches: less than the texts are long."""
SIZES: dict[str, int] = {
    name: size
    for size, names in (
        (SIZE, "vocab_size src_vocab_size tgt_vocab_size decoder_vocab_size unpadded_vocab_size vocab_size_per_layer_input"),
        (32, "hidden_size d_model n_embd dim emb_dim embedding_size embedding_dim word_embed_proj_dim attention_hidden_size"),
        (32, "lru_width d_latents input_embedding_size output_embedding_size kv_channels intra_bottleneck_size"),
        (
            4,
            "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_decoder_layers num_encoder_layers",
        ),
        (4, "num_attention_heads n_head n_heads num_heads attention_heads encoder_attention_heads decoder_attention_heads"),
        (4, "swa_num_attention_heads num_encoder_attention_heads num_decoder_attention_heads linear_num_heads"),
        (2, "num_key_value_heads num_kv_heads swa_num_key_value_heads"),
        (8, "head_dim d_kv qk_rope_head_dim qk_nope_head_dim v_head_dim attention_head_dim swa_head_dim d_head dim_head"),
        (8, "attention_head_size linear_head_dim hidden_size_per_layer_input index_head_dim query_pre_attn_scalar"),
        (8, "mamba_n_heads mamba_num_heads n_mamba_heads mamba_d_head mamba_head_dim"),
        (4, "rotary_dim"),
        (16, "kv_lora_rank q_lora_rank o_lora_rank embedding_rank"),
        (48, "intermediate_size ffn_dim encoder_ffn_dim decoder_ffn_dim d_ff dff dim_ff hidden_dim ffn_hidden_size d_inner"),
        (48, "shared_intermediate_size moe_intermediate_size shared_expert_intermediate_size intermediate_size_mlp"),
        (48, "feed_forward_size expert_ffn_hidden_size dense_intermediate_size"),
        (4, "num_experts n_routed_experts num_local_experts moe_num_experts"),
        (2, "num_experts_per_tok moe_topk num_experts_per_token moe_k top_k_experts"),
        (1, "n_shared_experts num_shared_experts n_group topk_group num_expert_group first_k_dense_replace num_dense_layers"),
        (1, "num_nextn_predict_layers"),
        (64, "max_position_embeddings n_positions n_ctx max_seq_len model_max_length context_length"),
        (64, "max_encoder_position_embeddings max_decoder_position_embeddings"),
        (N_SEEN, "sliding_window attention_window local_attention attention_window_size window_size sliding_window_size"),
        (N_SEEN, "attention_chunk_size"),
        (10, "entity_vocab_size entity_emb_size"),
    )
    for name in names.split()
}
"""By the names that configurations give them."""
_UNSET = frozenset(
    "head_dim num_key_value_heads vocab_size n_routed_experts n_shared_experts num_experts_per_tok n_group topk_group".split()
)
"""Sizes that some configurations leave out by themselves."""
OTHERWISE: dict[str, dict[str, Any]] = {
    "bailing_hybrid": {"layer_types": ["linear_attention", "full_attention"] * 2},
    "bamba": {"attn_layer_indices": [1]},
    "dbrx": {"attn_config": {"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 1e4}, "ffn_config": {"ffn_hidden_size": 48}},
    "encoder-decoder": {
        "encoder": {"model_type": "bert"} | families.BERT,
        "decoder": {"model_type": "bert", "is_decoder": True, "add_cross_attention": True} | families.BERT,
    },
    "esmc": {"num_key_value_heads": 4},
    "falcon_h1": {"mamba_d_ssm": 64},
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "gemma3_text": {"layer_types": ["sliding_attention", "full_attention"] * 2},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * 2},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "kimi_linear": {"layer_types": ["linear_attention", "full_attention"] * 2},
    "lfm2": {"layer_types": ["conv", "full_attention"] * 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "mamba2": {"num_heads": 8, "head_dim": 8},
    "neomme": {"head_dim": 16},
    "reformer": {"axial_pos_embds": False},
    "roc_bert": {"pronunciation_vocab_size": SIZE, "shape_vocab_size": SIZE},
    "xmod": {"default_language": "en_XX"},
    "zaya": {"num_experts_per_tok": 1},
}
"""What a family needs beside the sizes, so that its parts fit and each kind of its layers is there."""
NOT_TEXT = ("moshi", "musicgen", "musicgen_melody", "trocr", "whisper")
"""Decoders of sound and of pictures, which `transformers` lists among models of text."""


class Verdict(NamedTuple):
    """What becomes of a family, and why."""

    state: str
    why: str = ""


def names() -> list[str]:
    """Of all families that transformers has a model for that writes, or that fills in."""
    auto: Any = import_module("transformers.models.auto.modeling_auto")
    tasks = ("SEQ_TO_SEQ_CAUSAL_LM", "CAUSAL_LM", "MASKED_LM")
    return sorted({name for task in tasks for name in getattr(auto, f"MODEL_FOR_{task}_MAPPING_NAMES")} - {*NOT_TEXT})


def config_of(name: str) -> Any:
    """The smallest configuration of a family in which everything is still there."""
    from transformers import CONFIG_MAPPING

    kind = CONFIG_MAPPING[name]
    return kind(**_sizes(kind) | OTHERWISE.get(name, {}))


def _sizes(kind: Any) -> dict[str, Any]:
    default = kind()
    known = default.to_dict()
    found: dict[str, Any] = {
        name: SIZES[name]
        for name, value in known.items()
        if name in SIZES and (type(value) is int or (value is None and name in _UNSET))
    }
    if "kv_lora_rank" in found:  # keys and values are made of fewer numbers, and not shared
        found["num_key_value_heads"] = SIZES["num_attention_heads"]
    found |= {name: value for name, value in SHARED.items() if name in known and name != "vocab_size"}
    if known.get("is_encoder_decoder"):
        found["decoder_start_token_id"] = BOS
    for part in kind.sub_configs:
        if (own := getattr(default, part, None)) is not None:
            found[part] = {"model_type": own.model_type} | _sizes(type(own))
    return found


def made(name: str) -> Any:
    """A random model in float32 with the attention that its authors wrote out; the same at every call."""
    config = config_of(name)
    kind = classes_of(config)[0]
    with torch.device("meta"):
        n = sum(parameter.numel() for parameter in kind.from_config(config).parameters())
    assert n < 10_000_000, f"{name} has {n:,} parameters; make a size smaller"
    torch.manual_seed(1)
    model = kind.from_config(config, attn_implementation="eager").float().eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_(0, 0.25)
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding) and module.padding_idx is not None:
            module.weight[module.padding_idx] = 0
    return model


@torch.no_grad()
def judged(name: str) -> Verdict:
    """Loads a model of the family, and compares what is written and seen with the same model by itself."""
    with quiet_transformers():
        model, own = made(name), made(name)
        is_encoder = not model.config.is_encoder_decoder and classes_of(model.config)[0].__name__ == "AutoModelForMaskedLM"
        ends = model.config.is_encoder_decoder or is_encoder
        try:
            reader = wrap_model(model, families.tokenizer(ends=ends), name)
        except ModelError as error:
            why = short(str(error).partition("cannot be shown here: ")[2])
            assert "a pass over three tokens fails" not in why, why
            return Verdict("one pass only" if _is_traced(own) else "refused", why)
        if not reader.network.kind.writes:
            _compare_encoder(reader, own)
            return Verdict("live, an encoder")
        _compare_writer(reader, own)
        return Verdict("live, an encoder–decoder" if ends else "live, a decoder")


def _is_traced(model: Any) -> bool:
    """Whether `trace_module` can show one pass of it."""
    both = model.config.is_encoder_decoder
    try:
        tv.trace_module(model, [5, 7, 6] if both else None, [5, 7] if both else [5, 7, 6])
    except TransformerVizError:
        return False
    return True


def _compare_encoder(reader: HuggingFaceModel, own: Any) -> None:
    for text, trace in zip(TEXTS, tv.decode(reader, list(TEXTS)), strict=True):
        alone = tv.decode(reader, text)
        expected, _ = returned(own, list(alone.source_ids or ()), [])
        assert _is(alone.encoder.weights, expected["encoder"])
        assert _is(trace.encoder.weights, alone.encoder.weights)


def _compare_writer(reader: HuggingFaceModel, own: Any) -> None:
    for text, trace in zip(TEXTS, tv.decode(reader, list(TEXTS), max_length=N_WRITTEN), strict=True):
        alone = tv.decode(reader, text, max_length=N_WRITTEN)
        assert written(alone) == theirs(own, reader.tokenizer.encode_source(text), max_new_tokens=N_WRITTEN)
        assert trace.output_ids == alone.output_ids
        assert _is(trace.decoder.weights, alone.decoder.weights)
    trace = tv.decode(reader, TEXTS[0], target=(5, 9, 9, 3))
    expected, _ = returned(own, list(trace.source_ids or ()), list(trace.target_ids or ()))
    assert expected.keys() == set(trace.kinds)
    assert all(_is(trace.attentions[kind].weights, whole) for kind, whole in expected.items())


def _is(attentions: np.ndarray, expected: np.ndarray) -> bool:
    """Two models with the same weights elsewhere in memory may round differently."""
    return attentions.shape == expected.shape and np.allclose(attentions, expected, rtol=0, atol=1e-4)


# ---- the table


REASONS: dict[str, str] = {
    r"none of its attention passes": "none of its attention passes through the `AttentionInterface` of transformers",
    r"it returns \d+ \w+ attentions, but \d+ were recorded": "it returns other attentions than pass through that interface",
    r"it has layers of '(\w+)'": "layers of `{}`",
    r"do not add up to 1, since a learned sink": "a learned sink takes a part of each row",
    r"has the shape \(.*\), but \(.*\) was recorded": "one attention over the source and what is written together",
}
"""What is said at loading, and how the table says it."""


def short(why: str) -> str:
    """How the table says why a family is refused."""
    for pattern, words in REASONS.items():
        if match := re.search(pattern, why):
            return words.format(*match.groups())
    return why


def table(verdicts: dict[str, Verdict]) -> str:
    """One row for each state and reason."""
    rows = defaultdict[Verdict, list[str]](list)
    for name, verdict in verdicts.items():
        rows[verdict].append(f"`{name}`")
    lines = [f"| {state} | {why} | {', '.join(found)} |" for (state, why), found in sorted(rows.items())]
    return "\n".join(["| | why | families |", "| --- | --- | --- |", *lines])


def verdicts_of(table: str) -> dict[str, Verdict]:
    """What a table says of each family."""
    verdicts = {}
    for state, why, listed in re.findall(r"^\| (live, .*?|one pass only|refused) \| (.*?) ?\| (`.*) \|$", table, re.MULTILINE):
        verdicts |= dict.fromkeys(re.findall("`(.*?)`", listed), Verdict(state, why))
    return verdicts


def main(asked: list[str]) -> None:
    """Prints the table, and on standard error which families could not be tried."""
    torch.set_num_threads(1)  # so small that several would wait for each other
    verdicts = {}
    for name in asked or names():
        try:
            verdicts[name] = judged(name)
        except Exception as error:
            print(f"{name} is not tried: {type(error).__name__}: {shorten(str(error), 160)}", file=sys.stderr, flush=True)
    print(table(verdicts))


if __name__ == "__main__":
    main(sys.argv[1:])
