"""Texts and targets as ids, and as padded batches."""

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_viz.errors import InputError, ModelError, OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.terms import ModelKind
from transformer_viz.vocabulary import END, START

LONGEST = 512

Target = str | tuple[str | int, ...]
"""A target as text, or as tokens without the end; an id stands for its token."""


def framed_sources(model: LoadedModel, texts: Sequence[str]) -> list[list[int]]:
    """The ids that the model reads of each text, special tokens included.

    Raises:
        InputError: a text that cannot be read, or that is too long for the model.
        ModelError: a tokenizer of another model.
    """
    reader = model.model
    rows = [model.tokenizer.encode_source(text) for text in texts]
    longest, most = max(map(len, rows)), longest_source(model)
    if longest > most:
        framing = "" if model.task is None else f" with {START} and {END}"
        raise InputError(f"The text makes {longest} tokens{framing}; this model reads at most {most}. Shorten it.")
    known = reader.sizes.source_vocabulary
    if model.task is None and any(number >= known for row in rows for number in row):
        raise ModelError(
            f"The tokenizer of {model.name} makes ids that its model, with {known:,} embeddings, does not have. "
            "They do not belong together: copy both from one place."
        )
    return rows


def longest_source(model: LoadedModel) -> int:
    """The most tokens that may be read of a text. A decoder alone needs one more position for what it writes."""
    kind, longest = model.model.kind, model.model.sizes.longest_source
    return longest if kind is ModelKind.ENCODER_DECODER else min(LONGEST, longest) - kind.has_prompt


def framed_targets(model: LoadedModel, targets: Sequence[Target], n_given: int = 0) -> list[list[int]]:
    """Frames targets: each target and its end, after so many tokens that were given."""
    reader = model.model
    if not reader.kind.writes:
        raise OptionError(f"{model.name} is an encoder alone, which writes nothing: leave the target out")
    rows = [[*ids_of_target(model, target), *reader.end_ids[:1]] for target in targets]
    longest, most = max(map(len, rows)), longest_target(model, n_given)
    if longest > most:
        raise InputError(f"The target makes {longest} tokens with {END}; this model writes at most {most}. Shorten it.")
    return rows


def longest_target(model: LoadedModel, n_given: int = 0) -> int:
    """The most tokens that may be written after so many that were given."""
    return min(LONGEST, model.model.sizes.longest_target) - n_given


def ids_of_target(model: LoadedModel, target: Target) -> list[int]:
    """Without the end."""
    tokenizer = model.tokenizer
    return tokenizer.encode_target(target) if isinstance(target, str) else tokenizer.ids_of("Target token", target)


def padded_batch(
    rows: Sequence[Sequence[int]],
    pad_id: int,
    width: int | None = None,
    *,
    on_left: bool = False,
    device: torch.device | str = "cpu",
) -> tuple[Tensor, Tensor]:
    """Rows of ids as one (batch, width) tensor, and where it is padding: pads are counted, not recognized by their id.

    `width` is that of the longest row unless it is given.
    """
    width = max(map(len, rows)) if width is None else width
    ids, is_padding = [], []
    for row in rows:
        pads, own = [pad_id] * (width - len(row)), [False] * len(row)
        ids.append([*pads, *row] if on_left else [*row, *pads])
        is_padding.append([*[True] * len(pads), *own] if on_left else [*own, *[True] * len(pads)])
    return torch.tensor(ids, device=device), torch.tensor(is_padding, device=device)
