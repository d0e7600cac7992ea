"""Keeps, for each rule of a mask check, the worst case that was seen."""

from dataclasses import replace

import torch
from torch import Tensor

from transformer_viz.analysis.mask_report import Finding, Look, Rule
from transformer_viz.terms import Kind

Key = int | Tensor | None
"""Where something was replaced: in all sentences at one position, or in each at its own, (batch,)."""


class Worst:
    """The largest change for every rule, where it was, and how many rows were over the tolerance."""

    def __init__(self) -> None:
        self.checked: dict[Rule, float] = {}
        self._attention: dict[Rule, Finding] = {}
        self._output: dict[Rule, Finding] = {}
        self.looks: dict[Rule, Look] = {}

    def see_attention(self, rule: Rule, change: Tensor, kind: Kind, tolerance: float, key: Key = None) -> None:
        """`change` (batch, layer, head, query): how much each row of weights changed."""
        size, count = self._seen(rule, change, tolerance)
        if size > tolerance:
            sentence, layer, head, query = _place(change)
            found = Finding(rule, size, tolerance, count, kind, layer, head, query, _of(key, sentence))
            self._attention[rule] = _worse(self._attention.get(rule), found)

    def see_output(self, rule: Rule, change: Tensor, tolerance: float, key: Key = None) -> None:
        """`change` (batch, step): how much each step's logits changed (see `changes.Rows`)."""
        size, count = self._seen(rule, change, tolerance)
        if size > tolerance:
            sentence, query = _place(change)
            found = Finding(rule, size, tolerance, count, query=query, key=_of(key, sentence))
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

    def leave_out_what_the_future_explains(self) -> list[str]:
        """Where later tokens are seen, a target without them is another one, whatever its length does. Notes that say so."""
        broken = {*self._attention, *self._output}
        if not {"future", "target length"} <= broken:
            return []
        for seen in (self.checked, self._attention, self._output):
            seen.pop("target length", None)
        return ["Note: whether a step also depends on how long the target is cannot be told as long as it sees later tokens."]

    def _seen(self, rule: Rule, change: Tensor, tolerance: float) -> tuple[float, int]:
        if not change.numel():
            self.checked.setdefault(rule, 0.0)
            return 0.0, 0
        size = float(change.max())
        self.checked[rule] = max(self.checked.get(rule, 0.0), size)
        return size, int((change > tolerance).sum())


def _of(key: Key, sentence: int) -> int | None:
    return int(key[sentence]) if isinstance(key, Tensor) else key


def _place(change: Tensor) -> list[int]:
    return [int(i) for i in torch.unravel_index(change.argmax(), change.shape)]


def _worse(known: Finding | None, found: Finding) -> Finding:
    if known is None:
        return found
    return replace(known if known.size >= found.size else found, count=known.count + found.count)
