"""Folders of Hugging Face models that somebody may have spoiled on purpose, made from sound ones by a seed."""

import base64
import json
import os
import random
import shutil
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.readers import saved_models

FAMILIES = ("gpt2", "bert", "marian", "t5", "llama", "albert", "bart")
N = 255
ODD: tuple[Any, ...] = (10**5, 10**9, 2**63, 10**30, 0, -1, -(10**9), 1.5, "12", "", None, True, [], {}, [10**9], {"a": 10**9})
Spoil = Callable[[random.Random, Path], None]
SIZES = {
    "layers": "n_layer num_hidden_layers num_layers num_decoder_layers encoder_layers decoder_layers num_hidden_groups "
    "inner_group_num n_layers num_blocks max_window_layers",
    "positions": "n_positions n_ctx max_position_embeddings relative_attention_num_buckets relative_attention_max_distance",
    "widths": "n_embd hidden_size d_model d_ff d_kv head_dim n_head num_attention_heads num_heads num_key_value_heads n_inner "
    "intermediate_size encoder_ffn_dim embedding_size encoder_attention_heads type_vocab_size",
    "vocabulary": "vocab_size decoder_vocab_size num_labels num_experts num_local_experts pad_token_id eos_token_id "
    "bos_token_id decoder_start_token_id",
}
IMPLEMENTATIONS = ("_attn_implementation", "attn_implementation", "_experts_implementation", "experts_implementation")
IMPLEMENTATIONS += ("_attn_implementation_internal", "_experts_implementation_internal")
KERNELS: tuple[Any, ...] = (
    "evil/kernel",
    "paged|evil/kernel",
    "evil/kernel@main:run",
    {"": "evil/kernel"},
    "flash_attention_2",
)
KERNELS += ("kernels-community/flash-attn3", "deepgemm", "sonicmoe", 5, [])
GENERATION: dict[str, tuple[Any, ...]] = {
    "repetition_penalty": (0, -1.5, "a", 1e308, []),
    "encoder_repetition_penalty": (0, -1.0, "a"),
    "no_repeat_ngram_size": (-3, 10**9, "2", 2.5),
    "encoder_no_repeat_ngram_size": (-3, 10**9, {}),
    "bad_words_ids": ([[10**6]], [[-1]], [[]], "abc", [[i] for i in range(3000)], 7),
    "min_length": (-5, 10**12, "a"),
    "min_new_tokens": (-5, 10**12, "a"),
    "max_length": (-5, 0, 10**12, "a", 1.5),
    "max_new_tokens": (-5, 0, 10**12, "a", []),
    "forced_bos_token_id": (10**6, -1, "a", [1, 2]),
    "forced_eos_token_id": (10**6, -7, "a", [10**6]),
    "suppress_tokens": ([10**6], [-9], "a", 3),
    "begin_suppress_tokens": ([10**6], ["a"], 3),
    "renormalize_logits": ("a", 5),
    "eos_token_id": (10**6, -1, "a", [10**6, 2], [None]),
    "pad_token_id": (10**6, -1, "a", [3]),
    "decoder_start_token_id": (10**6, -1, "a", [2]),
    "bos_token_id": (10**6, -1, "a"),
    "cache_implementation": ("evil/cache", 5),
    "compile_config": ({"backend": "evil"}, 5),
    "watermarking_config": ({"greenlist_ratio": 5}, 7),
    "transformers_version": (5, {"a": 1}),
}
NORMALIZERS: tuple[Any, ...] = (
    *({"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": p, "content": c}] * n}
      for p, c, n in (({"String": "e"}, "e" * 20, 8), ({"Regex": "."}, "ab" * 40, 6), ({"String": ""}, "xx", 30),
                      ({"Regex": "(e+)+$"}, "e", 1), ({"Regex": "(?="}, "e", 1))),
    {"type": "Prepend", "prepend": "e" * 10**7},
    {"type": "Sequence", "normalizers": [{"type": "Lowercase"}] * 10**5},
    {"type": "Precompiled", "precompiled_charsmap": "!"},
    {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(b"\4\0\0\0\0\0\0\0" + b"e" * 10**6).decode()},
    {"type": "Replace", "pattern": "e", "content": 5},
    {"type": "Evil"},
    [],
)  # fmt: skip
PRE: tuple[Any, ...] = (
    {
        "type": "Sequence",
        "pretokenizers": [{"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False}] * 40,
    },
    {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False},
    {"type": "Split", "pattern": {"Regex": "((((("}, "behavior": "Isolated", "invert": False},
    {"type": "Metaspace", "replacement": "abc", "prepend_scheme": "always", "split": True},
)
_TEXT, _START = {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<s>", "type_id": 0}}


def template(ids: int = 1, single: Any = (_START, _TEXT)) -> dict[str, Any]:
    """A rule that puts so many tokens around a text."""
    special = {"<s>": {"id": "<s>", "ids": [1] * ids, "tokens": ["<s>"] * ids}}
    return {"type": "TemplateProcessing", "single": single, "pair": [_TEXT], "special_tokens": special}


POST: tuple[Any, ...] = (
    template(single=[_TEXT] * 10**5),
    {"type": "Sequence", "processors": [template(single=[_TEXT] * 9)] * 9},
    template(10**6),
    template(single=5),
)
DECODERS: tuple[Any, ...] = (
    {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "w"}, "content": "w" * 30}] * 7},
    {"type": "WordPiece", "prefix": "##" * 10**6, "cleanup": True},
    {"type": "Strip", "content": " ", "start": 10**9, "stop": 10**9},
    {"type": "Evil"},
)


def sound(folder: Path) -> dict[str, Path]:
    """One of each family, to be copied."""
    return {family: saved_models.save(folder / family, family) for family in FAMILIES}


def spoiled(seed: int, of: dict[str, Path], parent: Path) -> tuple[str, Path]:
    """What was done to it, and the folder."""
    dice = random.Random(seed)
    family, (kind, spoil) = dice.choice(FAMILIES), KINDS[seed % len(KINDS)]
    folder = copied(of[family], parent / f"hostile-{seed}")
    spoil(dice, folder)
    return f"{kind} of {family}", folder


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to))


def change(folder: Path, name: str, change: Callable[[Any], None]) -> None:
    """Changes what a file of JSON holds; one that is not there holds nothing."""
    path = folder / name
    found = json.loads(path.read_text()) if path.exists() else {}
    change(found)
    path.write_text(json.dumps(found))


def _sizes(names: str) -> Spoil:
    def spoil(dice: random.Random, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        known = [name for name in names.split() if name in config] or names.split()
        keys = dice.sample(known, min(len(known), dice.choice((1, 1, 3))))
        change(
            folder,
            "config.json",
            lambda found: found.update({key: dice.choice(ODD[:4] if dice.random() < 0.6 else ODD) for key in keys}),
        )

    return spoil


def _implementations(dice: random.Random, folder: Path) -> None:
    value = {dice.choice(IMPLEMENTATIONS): dice.choice(KERNELS) for _ in range(3)}
    place = dice.choice(("", "", "text_config", "encoder", "decoder", "per_layer_config"))
    change(folder, "config.json", lambda found: found.update({place: value} if place else value))
    if dice.random() < 0.3:
        change(folder, "generation_config.json", lambda found: found.update(value))


def _settings(dice: random.Random, folder: Path) -> None:
    name = dice.choice(("fusion_config", "kernel_config", "distributed_config", "quantization_config", "transformers_weights"))
    change(
        folder, "config.json", lambda found: found.update({name: dice.choice(({"RMSNorm": "evil/kernel"}, "../x", [1], {}))})
    )


def _generation(dice: random.Random, folder: Path) -> None:
    names = dice.sample(sorted(GENERATION), dice.choice((1, 1, 2)))
    place = dice.choice(("generation_config.json", "generation_config.json", "config.json"))
    change(folder, place, lambda found: found.update({name: dice.choice(GENERATION[name]) for name in names}))


def _tokenizer(part: str, choices: tuple[Any, ...]) -> Spoil:
    def spoil(dice: random.Random, folder: Path) -> None:
        change(folder, "tokenizer.json", lambda found: found.update({part: dice.choice(choices)}))

    return spoil


def _words(dice: random.Random, folder: Path) -> None:
    n = dice.choice((60, 3_000, 100_000, 2_000_000))
    many = {f"x{i}": i for i in range(n)}
    model = dice.choice(
        (
            {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "<unk>"},
            {"type": "WordLevel", "vocab": many, "unk_token": "x0"},
            {"type": "WordLevel", "vocab": {"a": 4_294_967_295, "<unk>": 10**6}, "unk_token": "<unk>"},
            {"type": "WordPiece", "vocab": many, "unk_token": "x0", "continuing_subword_prefix": "#" * 10**6}
            | {"max_input_chars_per_word": 10**9},
            {"type": "Unigram", "vocab": [["a", -1.0]], "unk_id": 99, "byte_fallback": True},
            {"type": "Unigram", "vocab": [[word, -1.0] for word in many], "unk_id": 0, "byte_fallback": False},
            {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]] * 5},
            {"type": "BPE", "vocab": many, "merges": [], "unk_token": "gone", "dropout": 7.0},
        )
    )  # fmt: skip
    change(folder, "tokenizer.json", lambda found: found.update(model=model, added_tokens=[]))


def _added(dice: random.Random, folder: Path) -> None:
    many = {str(number): {"content": f"<{number}>", "special": True} for number in range(dice.choice((1, 50_000)))}
    value = dice.choice(
        (
            {"model_max_length": dice.choice((-5, 0, "a", 1e300, None, []))},
            {"added_tokens_decoder": {str(10**9): {"content": "<far>"}}},
            {"added_tokens_decoder": many},
            {"extra_special_tokens": dice.choice((["a"] * 50_000, 5, {"a": 5}))},
            {"tokenizer_class": dice.choice(("MarianTokenizer", "Evil", 5, "T5Tokenizer", "ByT5Tokenizer", "GPT2Tokenizer"))},
            {"tokenizer_file": "/etc/passwd", "vocab_file": "../../vocab.txt"},
            {"chat_template": dice.choice(("{% for", 5, "{{ 1 / 0 }}"))},
            {"unk_token": dice.choice((5, None, {"a": 1}, "gone")), "eos_token": "gone"},
            {"padding_side": "up", "truncation_side": 5},
            {"auto_map": {"AutoTokenizer": ["evil--a.B", "evil--a.B"]}},
            {"fast_tokenizer_files": ["tokenizer.../../x.json"]},
        )
    )
    change(folder, "tokenizer_config.json", lambda found: found.update(value))


def _no_file(dice: random.Random, folder: Path) -> None:
    names = ("config.json", "tokenizer.json", "generation_config.json", "tokenizer_config.json", "model.safetensors")
    names += ("vocab.json", "added_tokens.json", "special_tokens_map.json", "chat_template.jinja", "adapter_config.json")
    path = folder / dice.choice(names)
    path.unlink(missing_ok=True)
    what = dice.choice(("pipe", "socket", "folder", "zero", "loop", "out", "empty", "huge", "random"))
    if what == "pipe":
        os.mkfifo(path)
    elif what == "socket":
        here = Path.cwd()
        os.chdir(folder)  # a socket's path is short
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
        os.chdir(here)
    elif what == "folder":
        path.mkdir()
    elif what in ("zero", "loop", "out"):
        path.symlink_to({"zero": "/dev/zero", "loop": path.name, "out": "/etc/hostname"}[what])
    else:
        path.write_bytes({"empty": b"", "huge": b"", "random": dice.randbytes(1000)}[what])
        if what == "huge":
            os.truncate(path, 2**29)


def _index(dice: random.Random, folder: Path) -> None:
    one, two = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    (folder / "model.safetensors").rename(folder / one)
    maps: tuple[Any, ...] = (
        {"a": "../a.safetensors"}, {"a": "/etc/passwd"}, {"a": one, "b": two}, {"a": 5}, [], None, {"a": one}, {},
        {f"w{i}": f"m{i}.safetensors" for i in range(2000)}, {f"w{i}": one for i in range(10**6)},
    )  # fmt: skip
    place = {"weight_map": dice.choice(maps), "metadata": {"total_size": dice.choice(ODD)}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(dice.choice((place, place, place, []))))


def _header(dice: random.Random, folder: Path) -> None:
    path = folder / "model.safetensors"
    data = path.read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + n])
    name = dice.choice([each for each in header if each != "__metadata__"])
    what = dice.choice(("length", "dtype", "shape", "offsets", "name", "many", "zero", "deep"))
    if what == "length":
        path.write_bytes(struct.pack("<Q", dice.choice((0, 2**40, 2**63, n - 1))) + data[8:])
        return
    if what == "dtype":
        header[name]["dtype"] = dice.choice(("F8_E4M3", "I64", "BOOL", "C64", "EVIL"))
    elif what == "shape":
        header[name]["shape"] = dice.choice(([10**9, 10**9], [-1], [2**63], "a", []))
    elif what == "offsets":
        header[name]["data_offsets"] = dice.choice(([0, 0], [0, 2**50], [8, 4], [0]))
    elif what == "name":
        header["../../" + "x" * 1000] = header.pop(name)
    elif what in ("many", "zero"):
        prefix = dice.choice(("transformer.h", "x"))
        header |= {f"{prefix}.{i}.w": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(10**5)}
    else:
        header["__metadata__"] = {"format": "evil", "a": "x" * 10**6}
    made = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(made)) + made + data[8 + n :])


def _any_setting(dice: random.Random, folder: Path) -> None:
    def spoil(found: Any) -> None:
        for key in dice.sample(sorted(found), min(2, len(found))):
            if key != "model_type":
                found[key] = dice.choice(ODD)
        found |= dice.choice(
            ({}, {"attribute_map": {"a": "b", "b": "a"}}, {"sub_configs": 5}, {"__class__": "x"}, {"dtype": "load"})
        )

    change(folder, dice.choice(("config.json", "generation_config.json", "tokenizer_config.json")), spoil)


def _bytes(dice: random.Random, folder: Path) -> None:
    path = dice.choice(sorted(path for path in folder.iterdir() if path.is_file()))
    data = bytearray(path.read_bytes())
    for _ in range(dice.choice((1, 3, 30))):
        data[dice.randrange(len(data))] = dice.randrange(256)
    path.write_bytes(bytes(data[: dice.randrange(len(data))] if dice.random() < 0.3 else data))


KINDS: tuple[tuple[str, Spoil], ...] = (
    *((kind, _sizes(names)) for kind, names in SIZES.items()),
    ("implementations", _implementations),
    ("settings", _settings),
    ("generation", _generation),
    ("generation again", _generation),
    ("normalizer", _tokenizer("normalizer", NORMALIZERS)),
    ("pre-tokenizer", _tokenizer("pre_tokenizer", PRE)),
    ("post-processor", _tokenizer("post_processor", POST)),
    ("decoder", _tokenizer("decoder", DECODERS)),
    ("words", _words),
    ("added words", _added),
    ("no file", _no_file),
    ("index", _index),
    ("header", _header),
    ("any setting", _any_setting),
    ("bytes", _bytes),
)
