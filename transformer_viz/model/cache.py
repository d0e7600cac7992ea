"""Keys and values of the tokens that a decoder has already read.

Causal attention never changes an earlier token's key or value, so a step of
decoding computes one new query row and looks the rest up here.
"""

from torch import Tensor

_LEAST_ROOM = 16


class KeyValueCache:
    """Keys and values of one self-attention, in buffers that double when full.

    Every head of every sentence is an entry of its own, as batched matrix products take them.
    """

    def __init__(self) -> None:
        self._keys: Tensor | None = None
        self._values: Tensor | None = None
        self.length = 0

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Adds a token's key (entry, d_k) and value (entry, d_v).

        Returns:
            All keys so far, (entry, d_k, key), and all values, (entry, key, d_v).
        """
        if self._keys is None or self._values is None or self.length == self._keys.shape[2]:
            room = max(_LEAST_ROOM, 2 * self.length)
            # A key is a column, so that scores are one product of matrices that lie as they are needed.
            self._keys = _grown(self._keys, (*key.shape, room), 2, self.length, key)
            self._values = _grown(self._values, (value.shape[0], room, value.shape[1]), 1, self.length, value)
        self._keys.select(2, self.length).copy_(key)
        self._values.select(1, self.length).copy_(value)
        self.length += 1
        return self._keys.narrow(2, 0, self.length), self._values.narrow(1, 0, self.length)

    def reorder(self, entries: Tensor) -> None:
        """Makes entry i the former entry `entries[i]`; entries may repeat, as in beam search."""
        if self._keys is not None and self._values is not None:
            self._keys = self._keys.index_select(0, entries)
            self._values = self._values.index_select(0, entries)


def _grown(buffer: Tensor | None, shape: tuple[int, ...], axis: int, used: int, like: Tensor) -> Tensor:
    larger = like.new_empty(shape)
    if buffer is not None:
        larger.narrow(axis, 0, used).copy_(buffer)
    return larger
