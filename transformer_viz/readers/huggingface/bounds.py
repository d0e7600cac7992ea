"""Refuses a configuration or tokenizer that asks for more than the model's weights need.

All of it is checked before transformers reads them. Only the sizes of modules, which a family's own code computes, are counted
while the modules are made, before they take memory.
"""

import base64
import binascii
import json
import math
import re
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from transformer_viz import untrusted_files
from transformer_viz.errors import FileError, ModelError, short_repr
from transformer_viz.readers.description import Say

_LAYERS = re.compile(r"layers$|^n_layer$|blocks$|^(num_hidden|inner)_group(s|_num)$")
_SHARED_LAYERS, _MOST_LABELS, _LARGEST = 128, 2**16, 2**53
"""Layers that a configuration may name though its weights have fewer: some families use the same weights several times."""
_MOST_LAYERS = 256
"""Layers that a configuration may name where there are no weights."""
_IMPLEMENTATION = re.compile(r"(attn|attention|experts)_implementation")
_REFUSED = ("fusion_config", "kernel_config", "distributed_config")
"""Settings by which transformers exchanges a family's code for every model of the process."""
_SPARE = 2**23
"""Bytes that a model may have besides its weights, for an unsaved head and for computed positions and masks."""
_SHARED = 4
"""The most copies of a weight that a model may make before it ties them: in encoder, decoder, embedding and output."""
_MOST_WORDS, _SPARE_WORDS, _LARGEST_TOKENIZER = 2**20, 2**10, 2**26
_MOST_RULES, _MOST_GROWTH, _MOST_ADDED = 64, 200, 256
"""Steps of a tokenizer one after the other, how many times as long they may make a text, and tokens that one may add to it."""
_VOCABULARY = re.compile(r"vocab|token|merges|bpe|spm|spiece|sentencepiece|^dict")
_SENTENCE_PIECE = (".model", ".spm")
_GROWTH = {"ByteLevel": 2.0, "BertNormalizer": 3.0}


@dataclass(frozen=True)
class Weights:
    """The names, shapes and number of parameters in all files of weights.

    Attributes:
        shapes: of each tensor, by its name.
        n_parameters: numbers that are no whole ones.
    """

    shapes: Mapping[str, tuple[int, ...]]
    n_parameters: int

    @cached_property
    def n_layers(self) -> int:
        """The number of layers, told from the tensors' names: `h.0.attn` and `h.1.attn` make two."""
        numbers: dict[str, set[str]] = {}
        for name in self.shapes:
            for match in re.finditer(r"(?:^|\.)(\d+)(?=\.|$)", name):
                numbers.setdefault(name[: match.start()], set()).add(match[1])
        return max(map(len, numbers.values()), default=0)

    @cached_property
    def n_rows(self) -> int:
        """The rows of the largest matrix, which no vocabulary can exceed."""
        return max((shape[0] for shape in self.shapes.values() if len(shape) > 1), default=0)


def check_config(config: Mapping[str, Any], weights: Weights | None, name: str) -> None:
    """Refuses what would run other code, or make layers that are in no file of weights; without one, more than any model has.

    Raises:
        ModelError: it names the setting.
    """
    for key, value in settings(config):
        if key in _REFUSED and value is not None:
            raise ModelError(f"{name}: config.json sets {key}, which would replace code of transformers. Remove that setting.")
        if type(value) is not int:
            continue
        if abs(value) > _LARGEST:
            raise ModelError(
                f"{name}: config.json sets {short_repr(key)} to {short_repr(value)}; numbers up to {_LARGEST:,} are possible."
            )
        if weights is None and _LAYERS.search(key) and value > _MOST_LAYERS:
            raise ModelError(f"{name}: it sets {short_repr(key)} to {value:,}; at most {_MOST_LAYERS:,} are possible.")
        if weights is not None and _LAYERS.search(key) and value > max(_SHARED_LAYERS, weights.n_layers):
            raise ModelError(
                f"{name}: config.json sets {short_repr(key)} to {value:,}, but its weights have {weights.n_layers} layers. "
                "The files do not belong together: copy the whole folder again."
            )
        if key == "num_labels" and value > _MOST_LABELS:
            raise ModelError(f"{name}: config.json sets num_labels to {value:,}; at most {_MOST_LABELS:,} are possible.")


def without_implementations(config: Any) -> Any:
    """The configuration without settings, at any depth, that name an implementation of attention or of experts, since that
    could be one to download."""
    if isinstance(config, dict):
        return {key: without_implementations(value) for key, value in config.items() if not _IMPLEMENTATION.search(key)}
    return [without_implementations(value) for value in config] if isinstance(config, list) else config


def settings(config: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting of a configuration with its name, at any depth; entries of a list have the list's name."""
    yield key, config
    if isinstance(config, dict):
        for name, value in config.items():
            yield from settings(value, name)
    elif isinstance(config, list):
        for value in config:
            yield from settings(value, key)


@contextmanager
def limit_modules(weights: Weights, name: str, say: Say) -> Generator[None]:
    """Within, the building of a model that its weights cannot fill ends with a ModelError; `say` hears of each module."""
    from torch.nn.modules import module

    here, shapes = threading.get_ident(), set(weights.shapes.values())
    left = 4.0 * weights.n_parameters + _SPARE
    n_left = 100 * len(weights.shapes) + 10_000

    def count(_: Any, __: str, made: Any) -> None:
        nonlocal left
        # What is loaded later is no longer of the device "meta", where nothing takes memory.
        if made is None or threading.get_ident() != here or not made.is_meta:
            return
        size = math.prod(made.shape) * made.element_size()
        left -= size / _SHARED if tuple(made.shape) in shapes else size
        if left < 0:
            raise ModelError(
                f"{name}: config.json describes a larger model than the {weights.n_parameters:,} numbers of its weights can "
                f"fill, with a tensor of {' × '.join(f'{n:,}' for n in made.shape)} among others. "
                "The files do not belong together: copy the whole folder again."
            )

    def count_module(_: Any, __: str, ___: Any) -> None:
        nonlocal n_left
        if threading.get_ident() != here:
            return
        n_left -= 1
        if n_left < 0:
            raise ModelError(
                f"{name}: config.json describes far more modules than the {len(weights.shapes):,} tensors of its weights can "
                "fill. The files do not belong together: copy the whole folder again."
            )
        say("making its modules", None)

    with ExitStack() as stack:
        for register, hook in (
            (module.register_module_parameter_registration_hook, count),
            (module.register_module_buffer_registration_hook, count),
            (module.register_module_module_registration_hook, count_module),
        ):
            stack.callback(register(hook).remove)
        yield


def check_tokenizer(folder: Path, weights: Weights, name: str) -> None:
    """Refuses more words than the model has rows for, and rules that make a text very long.

    Raises:
        ModelError: it names the file.
    """
    most = min(_MOST_WORDS, weights.n_rows + _SPARE_WORDS)
    for path in untrusted_files.list_folder(folder):
        if not _VOCABULARY.search(path.name) or path.suffix == ".safetensors" or not untrusted_files.is_file(path):
            continue
        try:
            data = untrusted_files.read_bytes(path, _LARGEST_TOKENIZER)
            # A word and its id, or two words that are merged and what stands between: counted before they become objects.
            if data.count(b"\n" if path.suffix == ".txt" else b",") > 8 * most + 2**16:
                raise FileError(f"it has more tokens than the {most:,} that the model's weights have rows for")
            if path.name == "tokenizer.json":
                # By Python's reader: the one of `reading` takes a second for a large vocabulary, whose names stand once.
                try:
                    tokenizer = json.loads(data)
                except (ValueError, RecursionError) as error:
                    raise FileError(f"it is not JSON ({type(error).__name__})") from error
                if not isinstance(tokenizer, dict):
                    raise FileError("it should be a JSON object")
                _check_rules(tokenizer, most)
            elif path.suffix in _SENTENCE_PIECE:
                _check_pieces(data, most)
        except (AttributeError, KeyError, TypeError):
            raise ModelError(
                f"{name}: {short_repr(path.name)} does not describe a tokenizer. Copy the whole folder again."
            ) from None
        except FileError as error:
            raise ModelError(f"{name}: {short_repr(path.name)} cannot be used: {error}.") from error


def _check_rules(tokenizer: Mapping[str, Any], most: int) -> None:
    model = tokenizer.get("model")
    words = model.get("vocab") if isinstance(model, dict) else None
    _check_words(sum(len(each) for each in (words, tokenizer.get("added_tokens")) if isinstance(each, dict | list)), most)
    before = [tokenizer.get(part) for part in ("normalizer", "pre_tokenizer", "post_processor")]
    for steps in (before, [tokenizer.get("decoder")]):
        rules = [rule for step in steps for rule in _rules(step)]
        if len(rules) > _MOST_RULES:
            raise FileError(f"it has {len(rules):,} rules in a row; at most {_MOST_RULES} are possible")
        _check_growth(math.prod(map(_growth, rules)))


def _check_words(n: int, most: int) -> None:
    if n > most:
        raise FileError(f"it has {n:,} tokens, but the model's weights have rows for {most:,} only")


def _check_growth(growth: float) -> None:
    if growth > _MOST_GROWTH:
        raise FileError(f"its rules can make a text {growth:,.0f} times as long; at most {_MOST_GROWTH} times is possible")


def _rules(step: Any) -> Iterator[Mapping[str, Any]]:
    """The rules of one step of a tokenizer, in order; a step may be a sequence of steps."""
    if not isinstance(step, dict):
        return
    inner = next((step[part] for part in ("normalizers", "pretokenizers", "processors", "decoders") if part in step), None)
    if isinstance(inner, list):
        for each in inner:
            yield from _rules(each)
    else:
        yield step


def _growth(rule: Mapping[str, Any]) -> float:
    """The factor by which a rule can lengthen a text, at the least 1."""
    kind = rule.get("type")
    if kind == "Replace":
        text, content = rule["pattern"].get("String"), len(rule["content"])
        # What is replaced may be nothing, between any two characters.
        return max(1.0, content / len(text)) if text else 1.0 + content
    if kind == "Prepend":
        return 1.0 + len(rule["prepend"])
    if kind == "Precompiled":
        try:
            return _longest_piece(base64.b64decode(rule["precompiled_charsmap"] or ""))
        except (binascii.Error, ValueError):
            raise FileError("its map of characters, precompiled_charsmap, is not base64") from None
    if kind == "TemplateProcessing":
        pieces = rule["single"]
        special = [piece["SpecialToken"]["id"] for piece in pieces if "SpecialToken" in piece]
        n_added = sum(len(rule["special_tokens"][token]["ids"]) for token in special)
        if n_added > _MOST_ADDED:
            raise FileError(f"it adds {n_added:,} tokens to a text; at most {_MOST_ADDED} are possible")
        # How often the text stands in what is made of it.
        return max(1.0, float(len(pieces) - len(special)))
    return _GROWTH.get(str(kind), 1.0)


def _longest_piece(charsmap: bytes) -> float:
    """Characters of the longest text that one becomes, of a map of SentencePiece: a trie's size, the trie, and the texts."""
    texts = charsmap[4 + int.from_bytes(charsmap[:4], "little") :].split(b"\0")
    return float(max(1, *(len(text.decode(errors="replace")) for text in texts)))


def _check_pieces(model: bytes, most: int) -> None:
    """Checks a SentencePiece model: its fields 1 are pieces, its field 3 the normalizer, and field 2 of that a map of texts."""
    n = 0
    for number, value in _fields(model):
        n += number == 1
        if number == 3:
            _check_growth(max((_longest_piece(text) for inner, text in _fields(value) if inner == 2), default=1.0))
    _check_words(n, most)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a protocol buffers message that hold bytes, with their numbers."""
    place = 0

    def whole() -> int:
        nonlocal place
        number = shift = 0
        while place < len(message):
            byte = message[place]
            place, number, shift = place + 1, number | (byte & 127) << shift, shift + 7
            if byte < 128 or shift > 63:
                return number
        return number

    while place < len(message):
        tag = whole()
        if tag & 7 == 2:
            length = whole()
            yield tag >> 3, message[place : place + length]
            place += length
        elif tag & 7 == 0:
            whole()
        elif tag & 7 in (1, 5):
            place += 8 if tag & 7 == 1 else 4
        else:
            raise FileError("it is not a SentencePiece model")
