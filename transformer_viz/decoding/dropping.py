"""A batch that is being written, of which the sentences that have ended are read no further.

Texts of different lengths end at different steps; a batch of lengths from 1 to 32 computes half of its rows for nothing.
"""

import torch
from torch import Tensor

from transformer_viz.decoding.reader import Reading
from transformer_viz.model.tap import Site, Tap, TapName

_SHARE = 0.75
"""Of the rows: only when no more than this are left is the batch made smaller, since that copies what was read of each."""


class Dropping:
    """Reads on for the sentences that are left. To whoever asks, and to a tap, the batch stays whole: the others are zeros.

    Args:
        reading: of the whole batch, which has read its opening.
        n: sentences of the batch.
        tap: sees every attention, and changes nothing.
    """

    def __init__(self, reading: Reading, n: int, tap: Tap | None) -> None:
        self._reading, self._n, self._tap = reading, n, tap
        self._left: Tensor | None = None
        """int (sentence,), ascending; None = all."""

    def read(self, tokens: Tensor, ended: Tensor) -> Tensor:
        """Logits of the token after each new one, (batch,) -> (batch, vocabulary), where `ended` is False."""
        left, n_read = (~ended).nonzero()[:, 0], self._n if self._left is None else len(self._left)
        # Two at least, so that what is of one sentence can be told from what all share.
        if 2 <= len(left) <= _SHARE * n_read:
            self._reading.reorder(left if self._left is None else torch.searchsorted(self._left, left))
            self._left = left
        if self._left is None:
            return self._reading.read(tokens, tap=self._tap)
        seen = None if self._tap is None else _Whole(self._tap, self._left, self._n)
        return _spread(self._reading.read(tokens[self._left], tap=seen), self._left, self._n)


class _Whole:
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
