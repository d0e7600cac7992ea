"""Changes of rows, how much of each may be rounding (docs/masks.md), and the largest change of each rule."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from transformer_viz.mask_checks.result import Finding, ForbiddenWeight, Rule, Tolerance
from transformer_viz.terms import Kind

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
    def of(cls, values: Tensor, least: Tensor | None = None) -> "Rows":
        """A number's size is its own, and at least the row's: the lower quartile of the row's other numbers. `least` is the
        least size of each number, the same shape.

        Bans and sparse rows say nothing of the size: infinities, zeros, and the row's lowest number where it is there more
        than once are left out. A row that is tiny by chance counts as large as the lower quartile of the rows.
        """
        own = torch.where(values.isfinite(), values.abs(), 0.0)
        is_lowest = values == torch.where(values.isfinite(), values, torch.inf).amin(-1, keepdim=True)
        is_banned = is_lowest & (is_lowest.sum(-1, keepdim=True) > 1)
        of_row = _quartile(torch.where(is_banned | (own == 0), torch.nan, own))
        of_rows = of_row[of_row > 0].flatten()
        floor = _quartile(of_rows) if of_rows.numel() else 0.0
        tiny = torch.finfo(torch.float32).tiny
        sizes = torch.maximum(own, of_row.nan_to_num(0.0).clamp_min(floor)[..., None]).clamp_min(tiny)
        return cls(values, sizes if least is None else torch.maximum(sizes, least))

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


Key = int | Tensor | None
"""The positions where something was replaced: in all sentences at one position, or in each at another one, (batch,)."""


class Findings:
    """The largest change for every rule, where it was, and how many rows were over the tolerance.

    Attributes:
        checked: for each rule the largest change, broken or not.
    """

    def __init__(self) -> None:
        self.checked: dict[Rule, float] = {}
        self._attention: dict[Rule, Finding] = {}
        self._output: dict[Rule, Finding] = {}
        self._looks: dict[Rule, ForbiddenWeight] = {}

    def add(self, rule: Rule, change: Tensor, tolerance: float, key: Key = None, kind: Kind | None = None) -> None:
        """`change` is how much each row of a kind's weights changed, (batch, layer, head, query), or without a kind each step's
        logits, (batch, step) (see `changes.Rows`)."""
        findings = self._attention if kind else self._output
        size = float(change.max()) if change.numel() else 0.0
        self.checked[rule] = max(self.checked.get(rule, 0.0), size)
        if size <= tolerance:
            return
        sentence, *head, query = _largest_at(change)
        layer, head = head or (None, None)
        place = int(key[sentence]) if isinstance(key, Tensor) else key
        finding = Finding(rule, size, tolerance, int((change > tolerance).sum()), kind, layer, head, query, place)
        if (known := findings.get(rule)) is not None:
            finding = replace(known if known.size >= size else finding, count=known.count + finding.count)
        findings[rule] = finding

    def add_forbidden_weight(self, rule: Rule, weights: Tensor, kind: Kind) -> None:
        """`weights` (batch, layer, head, query, key): on forbidden keys; 0 elsewhere."""
        size, known = float(weights.max()) if weights.numel() else 0.0, self._looks.get(rule)
        if size > (known.weight if known else 0.0):
            _, layer, head, query, key = _largest_at(weights)
            self._looks[rule] = ForbiddenWeight(kind, layer, head, query, key, size)

    def has(self, rule: Rule) -> bool:
        """Tells whether it is broken."""
        return rule in self._attention or rule in self._output

    def worst(self) -> tuple[Finding, ...]:
        """Per broken rule the worst row of attention, or of the output where no attention shows it."""
        both = {**self._output, **self._attention}
        return tuple(replace(both[rule], look=self._looks.get(rule)) for rule in self.checked if rule in both)

    def drop_target_length_beside_future(self) -> list[str]:
        """Drops the target's length where later tokens are seen: a target without them is another one. Returns notes on it."""
        if not {"future", "target length"} <= self._attention.keys() | self._output.keys():
            return []
        for changes in (self.checked, self._attention, self._output):
            changes.pop("target length", None)
        return ["Note: while a step sees later tokens, it cannot be tested whether it depends on the length of the target."]


def _largest_at(change: Tensor) -> list[int]:
    return [int(i) for i in torch.unravel_index(change.argmax(), change.shape)]
