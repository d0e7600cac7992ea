"""Keeps, for each rule of a mask check, the worst case that was seen."""

from dataclasses import replace

import torch
from torch import Tensor

from transformer_viz.runs.mask_report import Finding, Look, Rule
from transformer_viz.terms import Kind


class Worst:
    """The largest change for every rule, where it was, and how many rows were over the tolerance."""

    def __init__(self) -> None:
        self.checked: dict[Rule, float] = {}
        self._attention: dict[Rule, Finding] = {}
        self._output: dict[Rule, Finding] = {}
        self.looks: dict[Rule, Look] = {}

    def see_attention(self, rule: Rule, change: Tensor, kind: Kind, tolerance: float, key: int | None = None) -> None:
        """`change` (batch, layer, head, query): how much each row of weights changed."""
        size, count = self._seen(rule, change, tolerance)
        if size > tolerance:
            _, layer, head, query = _place(change)
            found = Finding(rule, size, tolerance, count, kind, layer, head, query, key)
            self._attention[rule] = _worse(self._attention.get(rule), found)

    def see_output(self, rule: Rule, change: Tensor, tolerance: float, key: int | None = None) -> None:
        """`change` (batch, step): how much each step's logits changed, relative to the largest of them."""
        size, count = self._seen(rule, change, tolerance)
        if size > tolerance:
            _, query = _place(change)
            found = Finding(rule, size, tolerance, count, query=query, key=key)
            self._output[rule] = _worse(self._output.get(rule), found)

    def see_look(self, rule: Rule, weights: Tensor, kind: Kind) -> None:
        """`weights` (batch, layer, head, query, key): on forbidden keys; 0 elsewhere."""
        size = float(weights.max()) if weights.numel() else 0.0
        known = self.looks.get(rule)
        if size > (known.weight if known else 0.0):
            _, layer, head, query, key = _place(weights)
            self.looks[rule] = Look(kind, layer, head, query, key, size)

    def findings(self) -> tuple[Finding, ...]:
        """Per broken rule the worst row of attention, or of the output where no attention shows it."""
        rules = [rule for rule in self.checked if rule in self._attention or rule in self._output]
        worst = {rule: self._attention.get(rule) or self._output[rule] for rule in rules}
        return tuple(replace(found, look=self.looks.get(rule)) for rule, found in worst.items())

    def _seen(self, rule: Rule, change: Tensor, tolerance: float) -> tuple[float, int]:
        if not change.numel():
            self.checked.setdefault(rule, 0.0)
            return 0.0, 0
        size = float(change.max())
        self.checked[rule] = max(self.checked.get(rule, 0.0), size)
        return size, int((change > tolerance).sum())


def row_change(after: Tensor, before: Tensor) -> Tensor:
    """(…, n) twice -> (…): the largest difference in each row; infinite where one is NaN or infinite."""
    difference = (after - before).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    both_nan = after.isnan() & before.isnan()
    return torch.where(both_nan, 0.0, difference).amax(-1)


def relative_row_change(after: Tensor, before: Tensor) -> Tensor:
    """As `row_change`, divided by the largest finite number in `before` (at least 1)."""
    largest = before[before.isfinite()].abs().max().clamp_min(1.0) if bool(before.isfinite().any()) else 1.0
    return row_change(after, before) / largest


def _place(change: Tensor) -> list[int]:
    return [int(i) for i in torch.unravel_index(change.argmax(), change.shape)]


def _worse(known: Finding | None, found: Finding) -> Finding:
    if known is None:
        return found
    return replace(known if known.size >= found.size else found, count=known.count + found.count)
