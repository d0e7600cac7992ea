"""Inputs of a model without weights: texts or numbers of tokens as ids, padded, and the kinds of its tokens."""

from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transformer_viz.config_masks.result import PAD, Padding
from transformer_viz.decoding.token_batch import padded_batch
from transformer_viz.errors import InputError, OptionError
from transformer_viz.readers.huggingface.folder import name_of
from transformer_viz.readers.huggingface.tokenizer import HuggingFaceTokenizer
from transformer_viz.schema import whole_number
from transformer_viz.text_display import shorten

MOST_TEXTS, LONGEST, DEFAULT_LENGTHS = 8, 512, (8, 5)
_TYPES = ("mm_token_type_ids", "token_type_ids")
"""The names in models of the kinds of tokens that a processor tells them: of text, of a picture."""


def read_rows(
    model: nn.Module,
    folder: Path | None,
    texts: str | Sequence[str] | None,
    lengths: int | Sequence[int] | None,
    targets: str | Sequence[str] | None,
    target_lengths: int | Sequence[int] | None,
) -> list[tuple[list[list[int]], Any]]:
    """The ids of each side, and what labels them; None for numbers."""
    config: Any = model.config
    both = config.is_encoder_decoder
    if texts is not None and lengths is not None:
        raise OptionError("texts and lengths cannot be given together; give one of them")
    if not both and (targets is not None or target_lengths is not None):
        raise OptionError(f"targets are of a decoder with an encoder; a {type(model).__name__} has none")
    if targets is not None and texts is None:
        raise OptionError("targets are texts, which need texts to be read beside; give target_lengths beside lengths")
    if texts is None:
        counts = _counts("lengths", DEFAULT_LENGTHS if lengths is None else lengths)
        sides = [(_numbered(counts, config), None)]
    else:
        tokenizer = _tokenizer(folder)
        read = [texts] if isinstance(texts, str) else list(texts)
        _check_number("texts", len(read))
        sides = [([tokenizer.encode_source(text)[:LONGEST] for text in read], tokenizer)]
    if not both:
        return sides
    n, tokenizer = len(sides[0][0]), sides[0][1]
    if targets is not None and tokenizer is not None:
        written = [targets] if isinstance(targets, str) else list(targets)
        rows = [_started(tokenizer.encode_target(text), config)[:LONGEST] for text in written]
        other: tuple[list[list[int]], Any] = (rows, tokenizer)
    else:
        given = [len(row) for row in sides[0][0]] if target_lengths is None else _counts("target_lengths", target_lengths)
        other = (_numbered(given, config), None)
    if len(other[0]) != n:
        raise OptionError(f"{n} sources and {len(other[0])} targets are given; give one target for each source")
    return [*sides, other]


def _counts(name: str, lengths: int | Sequence[int]) -> list[int]:
    counts = [lengths] if isinstance(lengths, int) else list(lengths)
    _check_number(name, len(counts))
    return [whole_number(name, count, 1, LONGEST) for count in counts]


def _check_number(name: str, n: int) -> None:
    if not 1 <= n <= MOST_TEXTS:
        raise OptionError(f"{name} has {n} entries; 1 to {MOST_TEXTS} are possible")


def _numbered(counts: Sequence[int], config: Any) -> list[list[int]]:
    """Ids that stand for any token: no pad, no start and no picture. Which ones no mask depends on."""
    special = {
        value for key, value in config.to_dict().items() if key.endswith(("token_id", "token_index")) and type(value) is int
    }
    size = int(getattr(config.get_text_config(), "vocab_size", None) or 100)
    real = next((number for number in range(min(3, size - 1), size) if number not in special), 0)
    return [[real] * count for count in counts]


def _started(ids: list[int], config: Any) -> list[int]:
    start = getattr(config, "decoder_start_token_id", None)
    return ids if start is None else [start, *ids]


def _tokenizer(folder: Path | None) -> HuggingFaceTokenizer:
    if folder is None:
        raise OptionError("texts need the folder of a model, where its tokenizer is; give lengths for a configuration alone")
    from transformers import AutoTokenizer

    try:
        return HuggingFaceTokenizer.of(AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False))
    except Exception as error:
        raise InputError(
            f"{name_of(folder)} has no tokenizer that can be read ({shorten(str(error), 120)}). Give lengths instead of texts."
        ) from error


def padded(rows: list[list[int]], tokenizer: Any, side: Padding, pad_to: int | None) -> tuple[tuple[Tensor, Tensor], Any]:
    """The ids of a batch with which of them are padding, and the label of each."""
    longest = max(map(len, rows))
    width = longest if pad_to is None else whole_number("pad_to", pad_to, longest, LONGEST)
    ids, is_padding = padded_batch(rows, rows[0][0], width, on_left=side == "left")
    labels = []
    for row in rows:
        own = [str(number) for number in range(1, len(row) + 1)] if tokenizer is None else [tokenizer.label(i) for i in row]
        pads = [PAD] * (width - len(row))
        labels.append(tuple([*pads, *own] if side == "left" else [*own, *pads]))
    return (ids, is_padding.bool()), tuple(labels)


def model_inputs(
    model: nn.Module, ids: Sequence[Tensor], paddings: Sequence[Tensor], token_types: Sequence[int] | None, side: Padding
) -> dict[str, Tensor]:
    """Makes the model's inputs: ids, the attention mask, and the kinds of tokens."""
    config: Any = model.config
    pad, filled = getattr(config, "pad_token_id", None), list(ids)
    if isinstance(pad, int):
        filled = [tensor.masked_fill(padding, pad) for tensor, padding in zip(ids, paddings, strict=True)]
    inputs = {"input_ids": filled[0], "attention_mask": (~paddings[0]).long()}
    if len(filled) > 1:
        inputs |= {"decoder_input_ids": filled[1], "decoder_attention_mask": (~paddings[1]).long()}
    known = signature(model.forward).parameters
    if token_types is not None:
        name = next((name for name in _TYPES if name in known), None)
        if name is None or not _reads_pictures(config):
            raise OptionError(f"token_types are of a model that reads pictures; a {type(model).__name__} has none")
        n = int((~paddings[0]).sum(1).max())
        if len(token_types) != n or not all(isinstance(kind, int) and 0 <= kind <= 2 for kind in token_types):
            raise OptionError(f"token_types has {len(token_types)} entries; {n} are needed, each 0, 1 or 2, one for each token")
        types = torch.zeros_like(filled[0])
        for row, padding in enumerate(paddings[0]):
            real = ~padding
            types[row, real] = torch.tensor(token_types[: int(real.sum())], dtype=types.dtype)
        inputs[name] = types
    return {name: tensor for name, tensor in inputs.items() if name in known}


def _reads_pictures(config: Any) -> bool:
    return any(getattr(config, f"image_token_{end}", None) is not None for end in ("id", "index"))
