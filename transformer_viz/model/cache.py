"""The decoder's cache: reads a target token by token, computing the new row only and keeping the keys and values so far.

Causal attention never changes an earlier token's key or value.
"""

from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from transformer_viz.model.tap import Tap


@dataclass
class Cache:
    """The keys and values of the tokens that a decoder has read.

    Attributes:
        length: how many tokens were read.
        tensors: for each sublayer (its kind and layer), with a row for each sentence: keys and values, (batch, head, key,
            d_head); for a recurrence its memory.
    """

    length: int = 0
    tensors: dict[tuple[str, int], tuple[Tensor, ...]] = field(default_factory=dict)


class CachedModel(Protocol):
    """A decoder whose pass may begin after tokens that it has read."""

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        source_padding: Tensor | None = None,
        target_padding: Tensor | None = None,
        *,
        tap: Tap | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Logits (batch, query, vocabulary) of new tokens (batch, query), which are added to the cache."""
        ...


class CachedDecoder:
    """A batch of sentences that is being written; see `decoding.reader.Reading`.

    Args:
        model: in eval mode.
        memory: (batch, source, d_model) from its encoder.
        source_padding: bool (batch, source), or None when nothing is padded.
    """

    def __init__(self, model: CachedModel, memory: Tensor, source_padding: Tensor | None) -> None:
        self._model, self._memory, self._source_padding = model, memory, source_padding
        self._cache = Cache()

    def read(self, tokens: Tensor, *, tap: Tap | None = None) -> Tensor:
        """Logits (batch, vocabulary) of the token after each new one, int (batch,). The tap sees the new row alone."""
        return self._model.decode(tokens[:, None], self._memory, self._source_padding, tap=tap, cache=self._cache)[:, 0]

    def reorder(self, rows: Tensor) -> None:
        """Row i of the batch becomes the former row `rows[i]`; rows may repeat or be left out, as a beam search goes on."""
        self._memory = self._memory.index_select(0, rows)
        if self._source_padding is not None:
            self._source_padding = self._source_padding.index_select(0, rows)
        for place, tensors in self._cache.tensors.items():
            self._cache.tensors[place] = tuple(tensor.index_select(0, rows) for tensor in tensors)
