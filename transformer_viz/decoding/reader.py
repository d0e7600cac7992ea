"""What decoding asks of a model, and all that it knows of one.

Greedy decoding, sampling, beam search and teacher forcing take any `Reader`; our Transformer is one. Ids are the reader's own:
the first token, which tokens end a sentence, and what stands in the rows of those that have ended.
"""

from typing import Any, Protocol

import torch
from torch import Tensor

from transformer_viz.model.tap import Tap


class Reading(Protocol):
    """A batch of sentences that is being written, token by token."""

    def read(self, tokens: Tensor, *, tap: Tap | None = None) -> Tensor:
        """Logits of the token after each new one: int (batch,) -> (batch, vocabulary). The tap sees their attention."""
        ...

    def reorder(self, rows: Tensor) -> None:
        """Row i of the batch becomes the former row `rows[i]`; rows may repeat or be left out, as a beam search goes on."""
        ...


class Reader(Protocol):
    """A model in eval mode that reads a source and writes a target."""

    @property
    def start_id(self) -> int:
        """The token before the first that is written."""
        ...

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Tokens after which a sentence has ended."""
        ...

    @property
    def pad_id(self) -> int:
        """Stands after the end in the rows of shorter sentences. It may be one of `end_ids`: masks tell what is padding."""
        ...

    @property
    def training(self) -> bool:
        """Whether it would compute as in training, with dropout; no decoding is that of the model then."""
        ...

    def encode(self, source: Tensor, source_padding: Tensor | None = None, *, tap: Tap | None = None) -> Any:
        """Reads the sources once: int (batch, source), and bool of the same shape, True = padding. Returns the memory."""
        ...

    def incremental(self, memory: Any, source_padding: Tensor | None = None) -> Reading:
        """Begins to write."""
        ...

    def decode(
        self,
        target: Tensor,
        memory: Any,
        source_padding: Tensor | None = None,
        target_padding: Tensor | None = None,
        *,
        tap: Tap | None = None,
    ) -> Tensor:
        """Logits of the token after each target token, all rows at once: int (batch, step) -> (batch, step, vocabulary)."""
        ...


def is_end(reader: Reader, ids: Tensor) -> Tensor:
    """bool, which of these tokens end a sentence."""
    return torch.isin(ids, torch.tensor(reader.end_ids, device=ids.device))
