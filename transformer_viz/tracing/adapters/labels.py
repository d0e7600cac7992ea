"""Ids as people and libraries give them, and the tokens that label them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from transformer_viz.errors import OptionError

Vocabulary = Sequence[str] | Mapping[int, str] | Any
"""Tokens by id, or a tokenizer with `convert_ids_to_tokens`."""


def ids_of(name: str, given: Any, device: torch.device) -> Tensor | None:
    """One sentence as the model takes it: int64 (1, length), or as it was given where that has two axes.

    Raises:
        OptionError: no whole numbers, several sentences, or none.
    """
    if given is None:
        return None
    try:
        ids = torch.as_tensor(given, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise OptionError(f"{name} cannot be read as ids ({type(error).__name__}: {str(error)[:200]})") from error
    if ids.numel() == 0:
        raise OptionError(f"{name} is empty; at least one id is needed")
    if ids.dtype.is_floating_point or ids.dtype.is_complex or ids.dtype == torch.bool:
        raise OptionError(f"{name} holds {ids.dtype}; ids are whole numbers")
    if ids.dim() not in (1, 2) or (ids.dim() == 2 and 1 not in ids.shape):
        raise OptionError(
            f"{name} has the shape {tuple(ids.shape)}; one sentence is traced at a time: (length,), (1, length), "
            "or (length, 1) for a model that takes the length first"
        )
    return ids.long()[None] if ids.dim() == 1 else ids.long()


def flat(ids: Tensor | None) -> list[int]:
    """The ids of the sentence."""
    return [] if ids is None else ids.flatten().tolist()


def padding(ids: Tensor, pad_id: int | None, *, everywhere: bool) -> Tensor:
    """Finds the ids that are padding, bool in the shape of `ids` (…, position).

    A decoder may start with the padding symbol, as T5 and Marian do: there only what comes after the last real
    token counts, and the first position never.
    """
    is_pad = torch.zeros_like(ids, dtype=torch.bool) if pad_id is None else ids == pad_id
    if everywhere:
        return is_pad
    trailing = is_pad.flip(-1).cumprod(-1).flip(-1).bool()
    trailing[..., 0] = False
    return trailing


def check_labels(name: str, given: Iterable[str] | None, ids: Tensor | None) -> list[str] | None:
    """Labels as they were given, one for each id.

    Raises:
        OptionError: one text, or another number of them.
    """
    if given is None:
        return None
    if isinstance(given, str):
        raise OptionError(f"{name} is one text; a list of tokens is needed, one for each id")
    tokens, n = [str(token) for token in given], len(flat(ids))
    if len(tokens) != n:
        raise OptionError(f"{name} has {len(tokens)} tokens for {n} ids; one is needed for each")
    return tokens


def labels_of(vocabulary: Vocabulary | None, known: Mapping[int, str]) -> Callable[[int], str]:
    """The token of an id: that of the vocabulary, else the one that is known of this run, else the number itself."""
    convert = getattr(vocabulary, "convert_ids_to_tokens", None)
    if hasattr(vocabulary, "added_tokens_decoder"):
        # As `decode` labels them: what a piece spells.
        from transformer_viz.readers.huggingface.tokenizer import HuggingFaceTokenizer

        own = HuggingFaceTokenizer.of(vocabulary).label
        convert = own

    def label(number: int) -> str:
        token = None
        if convert is not None:
            token = convert(number)
        elif isinstance(vocabulary, Mapping):
            token = vocabulary.get(number)
        elif vocabulary is not None and 0 <= number < len(vocabulary):
            token = vocabulary[number]
        return known.get(number, str(number)) if token is None else str(token)

    return label
