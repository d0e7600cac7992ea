"""Folders of Hugging Face models that somebody has spoiled on purpose: a table of what is done to sound ones."""

import base64
import json
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.readers import saved_models

FAMILIES = ("gpt2", "bert", "marian", "t5", "llama", "albert", "bart")
IMPLEMENTATIONS = ("_attn_implementation", "attn_implementation", "_experts_implementation", "experts_implementation")
IMPLEMENTATIONS += ("_attn_implementation_internal", "_experts_implementation_internal")
_TEXT, _START = {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<s>", "type_id": 0}}


def template(ids: int = 1, single: Any = (_START, _TEXT)) -> dict[str, Any]:
    """A rule that puts so many tokens around a text."""
    special = {"<s>": {"id": "<s>", "ids": [1] * ids, "tokens": ["<s>"] * ids}}
    return {"type": "TemplateProcessing", "single": single, "pair": [_TEXT], "special_tokens": special}


def replace(pattern: dict[str, str], content: Any, n: int = 1) -> dict[str, Any]:
    """The same rule so many times, one after the other."""
    return {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": pattern, "content": content}] * n}


def charsmap(text: bytes) -> dict[str, Any]:
    data = base64.b64encode(b"\4\0\0\0\0\0\0\0" + text + b"\0a").decode()
    return {"type": "Precompiled", "precompiled_charsmap": data}


def words(n: int) -> dict[str, Any]:
    return {"type": "WordLevel", "vocab": {f"x{i}": i for i in range(n)}, "unk_token": "x0"}


_BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False}
_SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
RULES: list[tuple[str, Any, str]] = [
    ("normalizer", replace({"String": "e"}, "e" * 20, 8), "25,600,000,000 times as long"),
    ("normalizer", replace({"Regex": "x*"}, "e" * 999), "1,000 times as long"),
    ("normalizer", charsmap(b"e" * 5000), "5,000 times as long"),
    ("normalizer", {"type": "Sequence", "normalizers": [{"type": "Lowercase"}] * 999}, "at most 64 are possible"),
    ("pre_tokenizer", {"type": "Sequence", "pretokenizers": [_BYTES] * 40}, "1,099,511,627,776 times as long"),
    ("post_processor", {"type": "Sequence", "processors": [template(single=[_TEXT] * 9)] * 9}, "387,420,489 times as long"),
    ("post_processor", template(300), "it adds 300 tokens to a text"),
    ("decoder", {"type": "Replace", "pattern": {"String": "w"}, "content": "w" * 999}, "999 times as long"),
    ("model", words(10**5), "it has more tokens than"),
    ("model", words(5000), "it has 5,005 tokens"),
    *(("normalizer", replace({"Regex": pattern}, "e"), "") for pattern in ("(e+)+$", "(?=")),
    ("normalizer", {"type": "Prepend", "prepend": "e" * 10**7}, ""),
    ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "!"}, ""),
    ("normalizer", replace({"String": "e"}, 5), ""),
    *(("pre_tokenizer", _SPLIT | {"pattern": {"Regex": pattern}}, "") for pattern in ("(a+)+$", "(((((")),
    ("pre_tokenizer", {"type": "Metaspace", "replacement": "abc", "prepend_scheme": "always", "split": True}, ""),
    ("post_processor", template(single=[_TEXT] * 10**5), ""),
    ("post_processor", template(single=5), ""),
    ("decoder", {"type": "WordPiece", "prefix": "##" * 10**6, "cleanup": True}, ""),
    ("decoder", {"type": "Strip", "content": " ", "start": 10**9, "stop": 10**9}, ""),
    *((part, {"type": 5}, "") for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder")),
]
"""Of a tokenizer: which part becomes what, and how it is refused; without a sentence it may be refused, or used in time."""


def sound(folder: Path) -> dict[str, Path]:
    """One of each family, to be copied."""
    return {family: saved_models.save(folder / family, family) for family in FAMILIES}


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to))


def change(folder: Path, name: str, change: Callable[[Any], None]) -> None:
    """Changes what a file of JSON holds; one that is not there holds nothing."""
    path = folder / name
    found = json.loads(path.read_text()) if path.exists() else {}
    change(found)
    path.write_text(json.dumps(found))


LAYERS, LARGER = r"config.json sets '\w+' to {:,}, but its weights have [23] layers", "describes a larger model than the"
CONFIGS: list[tuple[str, dict[str, Any], str]] = [
    ("gpt2", {"n_layer": 10**5}, LAYERS.format(10**5)),
    ("marian", {"decoder_layers": 10**9}, LAYERS.format(10**9)),
    ("bart", {"encoder_layers": 10**9}, LAYERS.format(10**9)),
    ("t5", {"num_layers": 10**5}, LAYERS.format(10**5)),
    ("llama", {"num_hidden_layers": 10**9}, LAYERS.format(10**9)),
    ("gpt2", {"n_positions": 10**9}, LARGER),
    ("marian", {"max_position_embeddings": 10**5}, LARGER),
    ("bert", {"max_position_embeddings": 10**9}, LARGER),
    ("llama", {"head_dim": 10**5}, LARGER),
    ("gpt2", {"fusion_config": {"a": "b"}}, "config.json sets fusion_config, which would replace code"),
    ("gpt2", {"n_positions": 10**9, "n_embd": 2**63}, ""),
    ("gpt2", {"n_head": 0, "n_inner": -(10**9)}, ""),
    ("bert", {"vocab_size": 10**30, "type_vocab_size": 1.5}, ""),
    ("marian", {"decoder_vocab_size": 10**9, "d_model": "12"}, ""),
    ("t5", {"relative_attention_num_buckets": 10**9, "d_kv": 10**5}, ""),
    ("llama", {"num_key_value_heads": 0, "head_dim": -1}, ""),
    ("albert", {"num_hidden_groups": 10**5, "inner_group_num": 10**9}, ""),
    ("bart", {"encoder_ffn_dim": [10**9], "encoder_attention_heads": None}, ""),
    ("bert", {"num_labels": 10**9}, ""),
    ("gpt2", {"text_config": {"attn_implementation": "evil/kernel@main:run"}, "attn_implementation": 5}, ""),
    ("gpt2", {"_attn_implementation": "flash_attention_2", "experts_implementation": "deepgemm"}, ""),
    ("llama", {"attn_implementation": "paged|evil/kernel", "per_layer_config": {"_attn_implementation": []}}, ""),
    *(("gpt2", {name: {"RMSNorm": "evil/kernel"}}, "") for name in ("kernel_config", "distributed_config")),
    ("bart", {"quantization_config": [1]}, ""),
    ("bart", {"transformers_weights": "../x"}, ""),
    ("t5", {"attribute_map": {"a": "b", "b": "a"}}, ""),
    ("marian", {"sub_configs": 5, "dtype": "load"}, ""),
    ("bert", {"architectures": {"a": 10**9}, "id2label": True}, ""),
]
GENERATION: list[dict[str, Any]] = [
    {"repetition_penalty": 1e308},
    {"no_repeat_ngram_size": 10**9, "encoder_no_repeat_ngram_size": {}},
    {"bad_words_ids": [[i] for i in range(3000)]},
    {"bad_words_ids": [[-1]], "suppress_tokens": "a"},
    {"min_length": 10**12, "max_length": 10**12},
    {"max_new_tokens": "a", "min_new_tokens": -5},
    {"forced_eos_token_id": [10**6], "eos_token_id": [None]},
    {"pad_token_id": [3], "bos_token_id": "a"},
    {"decoder_start_token_id": [2]},
    {"cache_implementation": "evil/cache", "compile_config": {"backend": "evil"}},
    {"watermarking_config": 7, "transformers_version": {"a": 1}},
]
WORDS: list[dict[str, Any]] = [
    {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "<unk>"},
    words(2_000_000),
    {"type": "WordLevel", "vocab": {"a": 4_294_967_295, "<unk>": 10**6}, "unk_token": "<unk>"},
    {"type": "WordPiece", "vocab": {"a": 0, "x0": 1}, "unk_token": "x0", "continuing_subword_prefix": "#" * 10**6}
    | {"max_input_chars_per_word": 10**9},
    {"type": "Unigram", "vocab": [["a", -1.0]], "unk_id": 99, "byte_fallback": True},
    {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]] * 5},
    {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [], "unk_token": "gone", "dropout": 7.0},
]  # fmt: skip
TOKENIZERS: list[dict[str, Any]] = [
    *({"model_max_length": value} for value in (-5, "a", 1e300)),
    {"added_tokens_decoder": {str(10**9): {"content": "<far>"}}},
    {"added_tokens_decoder": {str(number): {"content": f"<{number}>", "special": True} for number in range(50_000)}},
    {"extra_special_tokens": ["a"] * 50_000},
    *({"tokenizer_class": name} for name in ("Evil", 5, "T5Tokenizer", "ByT5Tokenizer")),
    {"tokenizer_file": "/etc/passwd", "vocab_file": "../../vocab.txt"},
    *({"chat_template": text} for text in ("{% for", 5, "{{ 1 / 0 }}")),
    {"unk_token": {"a": 1}, "eos_token": "gone", "padding_side": "up"},
    {"auto_map": {"AutoTokenizer": ["evil--a.B", "evil--a.B"]}},
    {"fast_tokenizer_files": ["tokenizer.../../x.json"]},
]
MAPS: list[Any] = [
    {"a": "../a.safetensors"}, {"a": "/etc/passwd"}, {"a": "one.safetensors", "b": "two.safetensors"}, {"a": 5}, None,
    {"a": "one.safetensors"}, {f"w{i}": f"m{i}.safetensors" for i in range(2000)},
]  # fmt: skip


def put_index(folder: Path, places: Any) -> None:
    (folder / "model.safetensors").rename(folder / "one.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places, "metadata": {"total_size": -1}}))


def put_header(folder: Path, what: str, value: Any) -> None:
    """Other sizes, places or names of tensors in the file of weights."""
    path = folder / "model.safetensors"
    data = path.read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + n])
    name = next(name for name in header if name != "__metadata__")
    if what == "length":
        path.write_bytes(struct.pack("<Q", value) + data[8:])
        return
    if what == "name":
        header[value] = header.pop(name)
    elif what == "many":
        header |= {f"{value}.{i}.w": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(10**5)}
    else:
        header[name][what] = value
    made = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(made)) + made + data[8 + n :])


def put_bytes(folder: Path, seed: int) -> None:
    """Other bytes in one of the files, which may end early."""
    dice = random.Random(seed)
    path = dice.choice(sorted(path for path in folder.iterdir() if path.is_file()))
    data = bytearray(path.read_bytes())
    for _ in range(dice.choice((1, 3, 30))):
        data[dice.randrange(len(data))] = dice.randrange(256)
    path.write_bytes(bytes(data[: dice.randrange(len(data))] if seed % 3 == 0 else data))


HEADERS: list[tuple[str, Any]] = [
    *(("length", n) for n in (0, 2**40, 2**63)),
    *(("dtype", kind) for kind in ("F8_E4M3", "I64", "EVIL")),
    *(("shape", shape) for shape in ([10**9, 10**9], [-1], [2**63], "a")),
    *(("data_offsets", places) for places in ([0, 2**50], [8, 4], [0])),
    ("name", "../../" + "x" * 1000),
]


def _updated(file: str, values: dict[str, Any]) -> Callable[[Path], None]:
    return lambda folder: change(folder, file, lambda found: found.update(values))


DAMAGES: list[tuple[str, Callable[[Path], None], str]] = [
    *((family, _updated("config.json", values), sentence) for family, values, sentence in CONFIGS),
    ("t5", _updated("generation_config.json", {"decoder_start_token_id": 999}), "its decoder begins with the token 999 "),
    *(("gpt2", _updated("tokenizer.json", {part: rule}), sentence) for part, rule, sentence in RULES),
    *(("bart", _updated("generation_config.json", values), "") for values in GENERATION),
    *(("gpt2", _updated("tokenizer.json", {"model": model, "added_tokens": []}), "") for model in WORDS),
    *(("marian", _updated("tokenizer_config.json", values), "") for values in TOKENIZERS),
    *(("llama", lambda folder, places=places: put_index(folder, places), "") for places in MAPS),
    *(("gpt2", lambda folder, header=header: put_header(folder, *header), "") for header in HEADERS),
    ("gpt2", lambda folder: put_header(folder, "many", "x"), r"the files up to this one have 100,\d\d\d tensors; at most"),
    *((FAMILIES[seed % len(FAMILIES)], lambda folder, seed=seed: put_bytes(folder, seed), "") for seed in range(14)),
]
"""Which sound folder, what is done to it, and how it is refused; without a sentence it may be refused, or used in time."""
