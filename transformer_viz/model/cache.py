"""Keys and values of the tokens that a decoder has already read.

Causal attention never changes an earlier token's key or value, so a step of
decoding computes one new query row and looks the rest up here.
"""

import torch
from torch import Tensor


class KeyValueCache:
    """Keys and values of one self-attention, (batch, head, length, d_head), in buffers that double when full."""

    def __init__(self) -> None:
        self._keys: Tensor | None = None
        self._values: Tensor | None = None
        self.length = 0

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Adds (batch, head, new, d_head) and returns all keys and values so far."""
        end = self.length + key.shape[2]
        self._keys = _with_room(self._keys, key, self.length, end)
        self._values = _with_room(self._values, value, self.length, end)
        self._keys[:, :, self.length : end] = key
        self._values[:, :, self.length : end] = value
        self.length = end
        return self._keys[:, :, :end], self._values[:, :, :end]

    def reorder(self, rows: Tensor) -> None:
        """Makes row i of the batch the former row `rows[i]`; rows may repeat, as in beam search."""
        if self._keys is not None and self._values is not None:
            self._keys = self._keys.index_select(0, rows)
            self._values = self._values.index_select(0, rows)


def _with_room(buffer: Tensor | None, like: Tensor, used: int, needed: int) -> Tensor:
    if buffer is not None and buffer.shape[2] >= needed:
        return buffer
    batch, heads, _, width = like.shape
    larger = torch.empty(batch, heads, max(16, 2 * needed), width, dtype=like.dtype, device=like.device)
    if buffer is not None:
        larger[:, :, :used] = buffer[:, :, :used]
    return larger
