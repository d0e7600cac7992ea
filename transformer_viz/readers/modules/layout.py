"""Finds the axes of batch, heads and queries in the softmax of a module, and how its numbers become (batch, head, query, …)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_viz.readers.modules.kinds import KnownAttention
from transformer_viz.readers.modules.operators import Softmax

_SAME = 1e-4


@dataclass(frozen=True)
class Layout:
    """The axes of the rows of one softmax.

    Attributes:
        query_axis: of the queries.
        batch_axis: of the sentences, alone or with the heads.
        n_heads: that stand with the sentences in one axis; 1 = the axis is the sentences' alone.
        batch_comes_first: whether in such an axis all heads of the first sentence come first.
    """

    query_axis: int
    batch_axis: int
    n_heads: int = 1
    batch_comes_first: bool = True

    def standard(self, rows: Tensor) -> Tensor:
        """(rows …, last) as (batch, head, query, last)."""
        split = self._split(rows)
        order, others = self._axes(split.dim())
        return split.permute(order).flatten(1, len(others)) if others else split.permute(order).unsqueeze(1)

    def own(self, standard: Tensor, like: Tensor) -> Tensor:
        """The other way: (batch, head, query, last) as the rows of a softmax, `like` this one but for its last axis."""
        split = self._split(like)
        order, _ = self._axes(split.dim())
        sizes = [split.shape[axis] for axis in order[:-1]] + [standard.shape[-1]]
        moved = standard.reshape(sizes).permute([order.index(axis) for axis in range(split.dim())])
        if self.n_heads > 1:
            moved = moved.flatten(self.batch_axis, self.batch_axis + 1)
        return moved

    def _split(self, rows: Tensor) -> Tensor:
        if self.n_heads == 1:
            return rows
        n = rows.shape[self.batch_axis] // self.n_heads
        return rows.unflatten(self.batch_axis, (n, self.n_heads) if self.batch_comes_first else (self.n_heads, n))

    def _axes(self, n_axes: int) -> tuple[list[int], list[int]]:
        """The order of the axes, sentences first, and which of them are heads."""
        query, batch = self.query_axis, self.batch_axis
        if self.n_heads > 1:
            query += query > self.batch_axis
            batch += not self.batch_comes_first
        heads = [axis for axis in range(n_axes - 1) if axis not in (query, batch)]
        return [batch, *heads, query, n_axes - 1], heads


def find_layout(one: KnownAttention, alone: Sequence[Softmax], both: Softmax) -> Layout | None:
    """The layout of an attention, from a pass over each of two sentences alone and one over both; None where none fits."""
    first = alone[0]
    if len(first.shape) != len(both.shape):
        return None
    grown = [axis for axis, (n, m) in enumerate(zip(first.shape, both.shape, strict=True)) if n != m]
    if len(grown) != 1 or grown[0] in (one.query_axis, len(first.shape) - 1):
        return None
    (axis,) = grown
    if both.shape[axis] != 2 * first.shape[axis]:
        return None
    n_heads = first.shape[axis]
    for comes_first in (True, False) if n_heads > 1 else (True,):
        layout = Layout(one.query_axis, axis, n_heads, comes_first)
        standard = layout.standard(both.weights)
        if all(torch.allclose(standard[i], layout.standard(each.weights)[0], atol=_SAME) for i, each in enumerate(alone)):
            return layout
    return None
