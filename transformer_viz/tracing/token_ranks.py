"""From logits to steps: how probable each written token was, its rank, and the most probable candidates beside it.

Natural probabilities, in double precision: in float32 one of 1 − 10⁻⁹ would be 1. The order is that in which decoding
chooses: by logit, since log-probabilities can round to a tie; of equal logits the lowest id first.

Results are lists, since reading numbers one by one out of tensors would take as long as decoding.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_viz.decoding.tokenizer import Tokenizer
from transformer_viz.trace.steps import Candidate, Step

Name = Callable[[int], str]
"""From an id to its token."""


class TokenRanks:
    """Makes the steps of a batch from logits that come row by row, block by block, so that not all logits are kept.

    Args:
        n_candidates: how many of the most probable tokens each step keeps.
        tokenizer: of the model. Where its labels are not unique, steps hold ids beside them.
        most_rows: how many rows of the batch may be kept until they are looked at.
    """

    def __init__(self, n_candidates: int, tokenizer: Tokenizer, most_rows: int) -> None:
        self.n_candidates, self._label, self._most_rows = n_candidates, tokenizer.label, max(1, most_rows)
        self._with_ids = not tokenizer.has_unique_labels
        self._rows: list[tuple[Tensor, Tensor]] = []
        self._steps: list[list[Step]] = []

    def add(self, logits: Tensor, ids: Tensor) -> None:
        """Adds one row of every sentence: logits (batch, vocabulary), and the ids (batch,) that were written after it."""
        self._rows.append((logits, ids))
        if len(self._rows) > self._most_rows:
            self._rank()

    def steps(self, i: int) -> list[Step]:
        """The steps of sentence `i`."""
        if self._rows:
            self._rank()
        return self._steps[i] if self._steps else []

    def _rank(self) -> None:
        logits = torch.stack([logits for logits, _ in self._rows], 1).cpu()
        ids = torch.stack([ids for _, ids in self._rows], 1).tolist()
        self._rows.clear()
        self._steps = self._steps or [[] for _ in ids]
        for steps, rows, written in zip(self._steps, logits, ids, strict=True):
            steps += steps_of(rows, written, self.n_candidates, self._label, with_ids=self._with_ids)


def steps_of(
    logits: Tensor, written: Sequence[int], n_candidates: int, name: Name, *, with_ids: bool = False
) -> tuple[Step, ...]:
    """One step for each id that was written.

    Args:
        logits: float (step, vocabulary), on the CPU.
        written: an id a step.
        n_candidates: how many of the most probable tokens each step keeps.
        name: of an id.
        with_ids: whether a step holds ids beside labels.
    """
    if not written:
        return ()
    exact, tokens = logits.double().log_softmax(-1), torch.tensor(written)[:, None]
    best, ranks, logs = rankings_of(logits, n_candidates, exact), ranks_of(logits, tokens), exact.gather(-1, tokens)[:, 0]
    columns = (written, ranks, logs.tolist(), logs.exp().tolist(), best.named(name), best.ids)
    steps = [
        Step(
            token=name(number),
            probability=probability,
            log_probability=log_probability,
            rank=rank,
            candidates=candidates,
            token_id=number if with_ids else None,
            candidate_ids=tuple(ids) if with_ids else (),
        )
        for number, rank, log_probability, probability, candidates, ids in zip(*columns, strict=True)
    ]
    return tuple(steps)


def ranks_of(logits: Tensor, tokens: Tensor) -> list[int]:
    """Counts the tokens that have a higher logit than one token of each row, or an equal one and a lower id.

    Args:
        logits: float (row, vocabulary).
        tokens: int (row, 1).
    """
    # NaN, as of a row in which a mistake masks everything, counts as the highest.
    logits = logits.nan_to_num(nan=math.inf, posinf=math.inf, neginf=-math.inf)
    own, ids = logits.gather(-1, tokens), torch.arange(logits.shape[-1])
    return ((logits > own) | ((logits == own) & (ids < tokens))).sum(-1).tolist()


class Rankings(NamedTuple):
    """The most probable tokens of each row, best first."""

    ids: list[list[int]]
    probabilities: list[list[float]]

    def named(self, name: Name) -> tuple[tuple[Candidate, ...], ...]:
        """With their probabilities."""
        return tuple([tuple(zip(map(name, ids), p, strict=True)) for ids, p in zip(self.ids, self.probabilities, strict=True)])


def rankings_of(logits: Tensor, n: int, exact: Tensor | None = None) -> Rankings:
    """The n most probable tokens after each row of logits (row, vocabulary); `exact` are their log-probabilities, if known."""
    exact = logits.double().log_softmax(-1) if exact is None else exact
    # One more shows whether the last one ties with it. To sort whole rows would take three times as long.
    results, ids = exact.topk(min(n + 1, exact.shape[-1]))
    # Not so with a tie, or with a number that is none.
    if not bool((results[:, 1:] < results[:, :-1]).all()):
        ids = logits.sort(dim=-1, descending=True, stable=True).indices[:, : n + 1]
        results = exact.gather(-1, ids)
    # What has a logit of −∞ is impossible, and never listed.
    kept = [row.index(-math.inf, 0, n) if -math.inf in row[:n] else n for row in results.tolist()]
    columns = zip(ids.tolist(), results.exp().tolist(), kept, strict=True)
    rows = [(row[:k], probabilities[:k]) for row, probabilities, k in columns]
    return Rankings([row for row, _ in rows], [probabilities for _, probabilities in rows])
