"""Measures how much rows of numbers have changed, and how much of that may be rounding; docs/masks.md explains both."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer_viz.mask_checks.result import Tolerance

TOLERANCES = {
    torch.float64: Tolerance(1e-9, 1e-9),
    torch.float32: Tolerance(1e-6, 1e-4),
    torch.float16: Tolerance(1e-2, 0.3),
    torch.bfloat16: Tolerance(1e-1, 1.0),
}
"""Tolerances by the type of the computation; rounding differs since at another shape a kernel may add in another order."""


@dataclass(frozen=True)
class Rows:
    """Rows of an output, and the size that a change in each of its numbers is measured against.

    Attributes:
        values: (batch, step, n), float64.
        sizes: the same shape, positive.
    """

    values: Tensor
    sizes: Tensor

    @classmethod
    def of(cls, values: Tensor) -> "Rows":
        """A number's size is its own, and at least the row's: the lower quartile of the row's other numbers.

        Bans and sparse rows say nothing of the size: infinities, zeros, and the row's lowest number where it is there more
        than once are left out. A row that is tiny by chance counts as large as the lower quartile of the rows.
        """
        own = torch.where(values.isfinite(), values.abs(), 0.0)
        is_lowest = values == torch.where(values.isfinite(), values, torch.inf).amin(-1, keepdim=True)
        is_banned = is_lowest & (is_lowest.sum(-1, keepdim=True) > 1)
        of_row = _quartile(torch.where(is_banned | (own == 0), torch.nan, own))
        least = of_row[of_row > 0].flatten()
        floor = _quartile(least) if least.numel() else 0.0
        tiny = torch.finfo(torch.float32).tiny
        return cls(values, torch.maximum(own, of_row.nan_to_num(0.0).clamp_min(floor)[..., None]).clamp_min(tiny))

    def __getitem__(self, at: Any) -> "Rows":
        return Rows(self.values[at], self.sizes[at])

    def change(self, after: Tensor) -> Tensor:
        """(batch, step): the largest change in each row, relative to its number's size."""
        change = after.new_zeros(after.shape[:-1], dtype=torch.result_type(after, self.sizes))
        # Most rows are the very same: a vocabulary of many thousands would be divided for each of them.
        differs = (after != self.values).any(-1)
        sizes = self.sizes[differs]
        change[differs] = row_change(after[differs] / sizes, self.values[differs] / sizes)
        return change


def name_of(dtype: torch.dtype) -> str:
    """`float32`."""
    return str(dtype).removeprefix("torch.")


def row_change(after: Tensor, before: Tensor) -> Tensor:
    """(…, n) twice -> (…): the largest difference in each row.

    Equal infinities differ in nothing, nor do NaN and NaN; anything else beside them is an infinite difference.
    """
    same = (after == before) | (after.isnan() & before.isnan())
    return torch.where(same, 0.0, (after - before).abs().nan_to_num(nan=torch.inf, posinf=torch.inf)).amax(-1)


def is_no_distribution(logits: Tensor) -> Tensor:
    """(…, n) -> (…): whether no softmax can be taken: NaN, +∞, or nothing but −∞. One −∞ bans a token."""
    return (logits.isnan() | logits.isposinf()).any(-1) | logits.isneginf().all(-1)


def _quartile(values: Tensor) -> Tensor:
    """The lower quartile of the last axis, NaN left out; NaN where nothing is left."""
    last = (~values.isnan()).sum(-1, keepdim=True) - 1
    return values.sort(-1).values.gather(-1, (last // 4).clamp_min(0))[..., 0]  # NaN comes last
