"""For each rule of a mask check the largest change that was seen, and where it was."""

from dataclasses import replace

import torch
from torch import Tensor

from transformer_viz.mask_checks.result import Finding, ForbiddenWeight, Rule
from transformer_viz.terms import Kind

Key = int | Tensor | None
"""Where something was replaced: in all sentences at one position, or in each at another one, (batch,)."""


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

    def worst(self) -> tuple[Finding, ...]:
        """Per broken rule the worst row of attention, or of the output where no attention shows it."""
        both = {**self._output, **self._attention}
        return tuple(replace(both[rule], look=self._looks.get(rule)) for rule in self.checked if rule in both)

    def drop_target_length_beside_future(self) -> list[str]:
        """Where later tokens are seen, a target without them is another one, whatever its length does. Notes that say so."""
        if not {"future", "target length"} <= self._attention.keys() | self._output.keys():
            return []
        for changes in (self.checked, self._attention, self._output):
            changes.pop("target length", None)
        return ["Note: while a step sees later tokens, it cannot be tested whether it depends on the length of the target."]


def _largest_at(change: Tensor) -> list[int]:
    return [int(i) for i in torch.unravel_index(change.argmax(), change.shape)]
