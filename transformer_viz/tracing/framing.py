"""Texts and targets as framed tokens, how long they are once padded, and as padded rows of ids."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import InputError
from transformer_viz.terms import text_words
from transformer_viz.tracing.options import whole
from transformer_viz.vocabulary import END, PAD, PAD_ID, START

LONGEST = 512

Target = str | tuple[str, ...]
"""A target as text, or as tokens without `<end>`."""


@dataclass(frozen=True)
class Rows:
    """Framed tokens of every sentence, and how long they are once padded."""

    rows: list[list[str]]
    width: int

    @property
    def is_even(self) -> bool:
        """Whether nothing is padded."""
        return all(len(row) == self.width for row in self.rows)

    def padded(self, i: int) -> list[str]:
        """Row `i` with its padding."""
        return [*self.rows[i], *[PAD] * (self.width - len(self.rows[i]))]


def framed_sources(checkpoint: Checkpoint, texts: Sequence[str], pad_to: int | None) -> Rows:
    """What the encoder reads of each text.

    Raises:
        InputError: a text that the task cannot read, or that is too long for the model.
    """
    model_limit = checkpoint.model.config.max_positions
    framed = [checkpoint.task.frame(checkpoint.task.read(t)) for t in texts]
    longest = max(map(len, framed))
    if longest > model_limit:
        raise InputError(
            f"The text makes {longest} tokens with {START} and {END}; this model reads at most {model_limit}. Shorten it."
        )
    return Rows(framed, longest if pad_to is None else whole("pad_to", pad_to, longest, model_limit))


def framed_targets(checkpoint: Checkpoint, targets: Sequence[Target], n_sources: int, pad_to: int | None) -> Rows:
    """What should be written: the symbols of each target and `<end>`."""
    if len(targets) != n_sources:
        raise InputError(f"There are {n_sources} sources and {len(targets)} targets; give one target for each source.")
    model_limit = min(LONGEST, checkpoint.model.config.max_positions)
    rows = [[*_symbols(checkpoint, target), END] for target in targets]
    longest = max(map(len, rows))
    if longest > model_limit:
        raise InputError(f"The target makes {longest} tokens with {END}; this model writes at most {model_limit}. Shorten it.")
    return Rows(rows, longest if pad_to is None else whole("pad_target_to", pad_to, longest, model_limit))


def padded(rows: Sequence[Sequence[int]], pad_id: int = PAD_ID) -> Tensor:
    """Rows of ids as one (batch, longest) tensor, filled up on the right."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows])


def _symbols(checkpoint: Checkpoint, target: Target) -> list[str]:
    """Tokens of a target; the empty one is `<end>` alone."""
    if isinstance(target, str):
        return checkpoint.task.read_target(target) if target else []
    vocabulary = checkpoint.task.target_vocabulary
    if unknown := [token for token in target if token not in vocabulary]:
        raise InputError(f"Target token {text_words(str(unknown[0]))} is not in the vocabulary of this model.")
    return list(target)
