"""The decoder's rows of a batch that is being written: from its cache, or computed again at every step."""

from typing import Any

import torch
from torch import Tensor

from transformer_viz.decoding.reader import Reader, read_opening
from transformer_viz.model.tap import Site, Tap, TapName

_SHARE = 0.75
"""The batch is made smaller when at most this share of its rows is left, since that copies the cache of each."""


class CachedRows:
    """One new row a step, the rest from the reader's cache.

    Texts of different lengths end at different steps; a batch of lengths from 1 to 32 computes half of its rows for nothing.
    With `drop_ended` sentences that have ended are read no further. To whoever calls, and to a tap, the batch stays whole:
    their rows are zeros.

    Args:
        reader: in eval mode.
        memory: of the reader's encoder.
        source_padding: bool (batch, source), or None when nothing is padded.
        tap: sees every attention; with `drop_ended` it changes nothing.
        drop_ended: see above.
    """

    def __init__(
        self, reader: Reader, memory: Any, source_padding: Tensor | None, tap: Tap | None, *, drop_ended: bool
    ) -> None:
        self._reader, self._reading = reader, reader.start_decoding(memory, source_padding)
        self._tap, self._drop_ended = tap, drop_ended
        self._left: Tensor | None = None
        """int (sentence,), ascending; None = all."""

    def read_opening(self, ids: Tensor) -> Tensor:
        """Logits after each token of the opening, int (batch, position) -> (batch, position, vocabulary)."""
        return read_opening(self._reader, self._reading, ids, self._tap)

    def read(self, tokens: Tensor, ended: Tensor) -> Tensor:
        """Logits of the token after each new one, (batch,) -> (batch, vocabulary), where `ended` is False."""
        n = len(tokens)
        if self._drop_ended:
            left, n_read = (~ended).nonzero()[:, 0], n if self._left is None else len(self._left)
            # Two at least, so that what is of one sentence can be told from what all share.
            if 2 <= len(left) <= _SHARE * n_read:
                self._reading.reorder(left if self._left is None else torch.searchsorted(self._left, left))
                self._left = left
        if self._left is None:
            return self._reading.read(tokens, tap=self._tap)
        tap = None if self._tap is None else _WholeBatchTap(self._tap, self._left, n)
        return _spread(self._reading.read(tokens[self._left], tap=tap), self._left, n)


class RecomputedRows:
    """All rows again at every step, for a tap that lets a query see a later token. Arguments as of `CachedRows`."""

    def __init__(self, reader: Reader, memory: Any, source_padding: Tensor | None, tap: Tap | None) -> None:
        self._reader, self._memory, self._source_padding, self._tap = reader, memory, source_padding, tap

    def read_opening(self, ids: Tensor) -> Tensor:
        """See `CachedRows`."""
        is_prompt = self._reader.kind.has_prompt and self._source_padding is not None
        self._ids = ids
        self._padding = self._source_padding if is_prompt else torch.zeros_like(ids, dtype=torch.bool)
        return self._decode()

    def read(self, tokens: Tensor, ended: Tensor) -> Tensor:
        """See `CachedRows`."""
        self._ids = torch.cat([self._ids, tokens[:, None]], 1)
        self._padding = torch.cat([self._padding, ended[:, None]], 1)
        return self._decode()[:, -1]

    def _decode(self) -> Tensor:
        return self._reader.decode(self._ids, self._memory, self._source_padding, self._padding, tap=self._tap)


class _WholeBatchTap:
    """A tap that is shown the whole batch."""

    def __init__(self, tap: Tap, left: Tensor, n: int) -> None:
        self._tap, self._left, self._n = tap, left, n
        self.names = getattr(tap, "names", None)

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        self._tap(site, name, value if len(value) == 1 else _spread(value, self._left, self._n))
        return value


def _spread(value: Tensor, left: Tensor, n: int) -> Tensor:
    """Rows (sentence that is left, …) in a batch of n, zeros elsewhere."""
    return value.new_zeros(n, *value.shape[1:]).index_copy_(0, left, value)
