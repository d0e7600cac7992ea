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
N = 180
LARGE: tuple[Any, ...] = (10**5, 10**9, 2**63, 10**30)
ODD: tuple[Any, ...] = (
    *LARGE,
    0,
    -1,
    -(10**9),
    1.5,
    1e308,
    "12",
    "",
    "evil",
    None,
    True,
    [],
    {},
    [10**9],
    [[-1]],
    {"a": 10**9},
)
Spoil = Callable[[random.Random, Path], None]
CODE = ("fusion_config", "kernel_config", "distributed_config", "quantization_config", "transformers_weights", "auto_map")
SETTINGS = (
    *("repetition_penalty", "encoder_repetition_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size"),
    *("bad_words_ids", "min_length", "min_new_tokens", "max_length", "max_new_tokens", "forced_bos_token_id"),
    *("forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens", "renormalize_logits", "eos_token_id", "pad_token_id"),
    *("decoder_start_token_id", "bos_token_id", "cache_implementation", "compile_config", "watermarking_config"),
    *("transformers_version", "attribute_map", "sub_configs", "dtype", "num_labels", "num_experts", "max_window_layers"),
)
"""Names that transformers looks for, whether a file has them or not."""
IMPLEMENTATIONS = ("_attn_implementation", "attn_implementation", "_experts_implementation", "experts_implementation")
IMPLEMENTATIONS += ("_attn_implementation_internal", "_experts_implementation_internal")
KERNELS: tuple[Any, ...] = (
    *("evil/kernel", "paged|evil/kernel", "evil/kernel@main:run", {"": "evil/kernel"}, "flash_attention_2"),
    *("kernels-community/flash-attn3", "deepgemm", "sonicmoe", 5, []),
)
_TEXT, _START = {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<s>", "type_id": 0}}


def template(ids: int = 1, single: Any = (_START, _TEXT)) -> dict[str, Any]:
    """A rule that puts so many tokens around a text."""
    special = {"<s>": {"id": "<s>", "ids": [1] * ids, "tokens": ["<s>"] * ids}}
    return {"type": "TemplateProcessing", "single": single, "pair": [_TEXT], "special_tokens": special}


def _replace(pattern: dict[str, str], content: Any) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


TWICE = {"type": "Sequence", "processors": [template(single=[_TEXT] * 9)] * 9}
_BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False}
_SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
RULES: dict[str, tuple[Any, ...]] = {
    "normalizer": (
        *({"type": "Sequence", "normalizers": [_replace(pattern, content)] * n}
          for pattern, content, n in (({"String": "e"}, "e" * 20, 8), ({"Regex": "."}, "ab" * 40, 6),
                                      ({"String": ""}, "xx", 30), ({"Regex": "(e+)+$"}, "e", 1), ({"Regex": "(?="}, "e", 1))),
        {"type": "Prepend", "prepend": "e" * 10**7},
        {"type": "Sequence", "normalizers": [{"type": "Lowercase"}] * 10**5},
        {"type": "Precompiled", "precompiled_charsmap": "!"},
        {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(b"\4\0\0\0\0\0\0\0" + b"e" * 10**6).decode()},
        _replace({"String": "e"}, 5),
    ),
    "pre_tokenizer": (
        {"type": "Sequence", "pretokenizers": [_BYTES] * 40},
        *(_SPLIT | {"pattern": {"Regex": pattern}} for pattern in ("(a+)+$", "(((((")),
        {"type": "Metaspace", "replacement": "abc", "prepend_scheme": "always", "split": True},
    ),
    "post_processor": (template(single=[_TEXT] * 10**5), TWICE, template(10**6), template(single=5)),
    "decoder": (
        {"type": "Sequence", "decoders": [_replace({"String": "w"}, "w" * 30)] * 7},
        {"type": "WordPiece", "prefix": "##" * 10**6, "cleanup": True},
        {"type": "Strip", "content": " ", "start": 10**9, "stop": 10**9},
    ),
}  # fmt: skip


def sound(folder: Path) -> dict[str, Path]:
    """One of each family, to be copied."""
    return {family: saved_models.save(folder / family, family) for family in FAMILIES}


def spoiled(seed: int, of: dict[str, Path], parent: Path) -> tuple[str, Path]:
    """What was done to it, and the folder."""
    dice = random.Random(seed)
    family, spoil = dice.choice(FAMILIES), KINDS[seed % len(KINDS)]
    folder = copied(of[family], parent / f"hostile-{seed}")
    spoil(dice, folder)
    return f"{spoil.__name__} of {family}", folder


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to))


def change(folder: Path, name: str, change: Callable[[Any], None]) -> None:
    """Changes what a file of JSON holds; one that is not there holds nothing."""
    path = folder / name
    found = json.loads(path.read_text()) if path.exists() else {}
    change(found)
    path.write_text(json.dumps(found))


def update(folder: Path, name: str, values: dict[str, Any]) -> None:
    change(folder, name, lambda found: found.update(values))


def sizes(dice: random.Random, folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    keys = [key for key, value in config.items() if type(value) is int]
    odd = LARGE if dice.random() < 0.6 else ODD
    update(folder, "config.json", {key: dice.choice(odd) for key in dice.sample(keys, dice.choice((1, 1, 3)))})


def implementations(dice: random.Random, folder: Path) -> None:
    value = {dice.choice(IMPLEMENTATIONS): dice.choice(KERNELS) for _ in range(3)}
    place = dice.choice(("", "", "text_config", "encoder", "decoder", "per_layer_config"))
    update(folder, "config.json", {place: value} if place else value)
    if dice.random() < 0.3:
        update(folder, "generation_config.json", value)


def settings(dice: random.Random, folder: Path) -> None:
    place = dice.choice(("generation_config.json", "generation_config.json", "config.json"))
    update(folder, place, {name: dice.choice(ODD) for name in dice.sample(SETTINGS, dice.choice((1, 1, 2)))})


def code(dice: random.Random, folder: Path) -> None:
    update(folder, "config.json", {dice.choice(CODE): dice.choice(({"RMSNorm": "evil/kernel"}, "../x", [1], {}))})


def anything(dice: random.Random, folder: Path) -> None:
    def spoil(found: Any) -> None:
        for key in dice.sample(sorted(found), min(2, len(found))):
            if key != "model_type":
                found[key] = dice.choice(ODD)

    change(folder, dice.choice(("config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json")), spoil)


def rules(dice: random.Random, folder: Path) -> None:
    part = dice.choice(sorted(RULES))
    update(folder, "tokenizer.json", {part: dice.choice((*RULES[part], {"type": "Evil"}))})


def words(dice: random.Random, folder: Path) -> None:
    many = {f"x{i}": i for i in range(dice.choice((60, 3_000, 100_000, 2_000_000)))}
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
    update(folder, "tokenizer.json", {"model": model, "added_tokens": []})


def added_words(dice: random.Random, folder: Path) -> None:
    many = {str(number): {"content": f"<{number}>", "special": True} for number in range(dice.choice((1, 50_000)))}
    choices: tuple[dict[str, Any], ...] = (
        {"model_max_length": dice.choice((-5, 0, "a", 1e300, None, []))},
        {"added_tokens_decoder": dice.choice((many, {str(10**9): {"content": "<far>"}}))},
        {"extra_special_tokens": dice.choice((["a"] * 50_000, 5, {"a": 5}))},
        {"tokenizer_class": dice.choice(("MarianTokenizer", "Evil", 5, "T5Tokenizer", "ByT5Tokenizer", "GPT2Tokenizer"))},
        {"tokenizer_file": "/etc/passwd", "vocab_file": "../../vocab.txt"},
        {"chat_template": dice.choice(("{% for", 5, "{{ 1 / 0 }}"))},
        {"unk_token": dice.choice((5, None, {"a": 1}, "gone")), "eos_token": "gone"},
        {"auto_map": {"AutoTokenizer": ["evil--a.B", "evil--a.B"]}},
        {"fast_tokenizer_files": ["tokenizer.../../x.json"]},
    )
    update(folder, "tokenizer_config.json", dice.choice(choices))


def no_file(dice: random.Random, folder: Path) -> None:
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


def index(dice: random.Random, folder: Path) -> None:
    one, two = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    (folder / "model.safetensors").rename(folder / one)
    maps: tuple[Any, ...] = (
        {"a": "../a.safetensors"}, {"a": "/etc/passwd"}, {"a": one, "b": two}, {"a": 5}, [], None, {"a": one}, {},
        {f"w{i}": f"m{i}.safetensors" for i in range(2000)}, {f"w{i}": one for i in range(10**6)},
    )  # fmt: skip
    place = {"weight_map": dice.choice(maps), "metadata": {"total_size": dice.choice(ODD)}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(dice.choice((place, place, place, []))))


def header(dice: random.Random, folder: Path) -> None:
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


def some_bytes(dice: random.Random, folder: Path) -> None:
    path = dice.choice(sorted(path for path in folder.iterdir() if path.is_file()))
    data = bytearray(path.read_bytes())
    for _ in range(dice.choice((1, 3, 30))):
        data[dice.randrange(len(data))] = dice.randrange(256)
    path.write_bytes(bytes(data[: dice.randrange(len(data))] if dice.random() < 0.3 else data))


KINDS: tuple[Any, ...] = (
    *(sizes, sizes, sizes, implementations, settings, settings, code, anything, anything),
    *(rules, rules, words, added_words, no_file, index, header, some_bytes),
)
