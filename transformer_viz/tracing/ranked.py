"""What logits say of the tokens that were written: how probable each was, its rank, and what was as probable or more.

Natural probabilities, in double precision: in float32 one of 1 − 10⁻⁹ would be 1. The order is that in which decoding
chooses: by logit, since log-probabilities can round to a tie; of equal logits the lowest id first.

Everything ends in lists, since numbers one by one out of tensors take as long as a step of decoding.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from operator import gt
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_viz.trace.trace import Candidate, Step

Name = Callable[[int], str]
"""From an id to its token."""


class RankedRows:
    """The steps of a batch, from logits that come row by row: they are looked at in blocks, and not all kept.

    Args:
        n_candidates: how many of the most probable tokens each step keeps.
        name: of an id.
        most_rows: how many rows of the batch may be kept until they are looked at.
        with_ids: whether steps say ids beside labels.
    """

    def __init__(self, n_candidates: int, name: Name, most_rows: int, *, with_ids: bool = False) -> None:
        self.n_candidates, self._name, self._most_rows, self._with_ids = n_candidates, name, most_rows, with_ids
        self._logits: list[Tensor] = []
        self._ids: list[Tensor] = []
        self._early: list[list[Step]] = []
        self._n_early = 0

    def __call__(self, logits: Tensor, ids: Tensor) -> None:
        """One row more of every sentence: logits (batch, vocabulary), and the ids (batch,) that followed."""
        self._logits.append(logits)
        self._ids.append(ids)
        if len(self._logits) > self._most_rows:
            self._look()

    def whole(self, logits: Tensor, ids: Tensor) -> None:
        """All rows at once: logits (batch, row, vocabulary), ids (batch, row)."""
        if logits.shape[1] > self._most_rows:
            for each in zip(logits.unbind(1), ids.unbind(1), strict=True):
                self(*each)
        else:
            self._rest = logits.cpu()

    def of(self, i: int, first: int, ids: Sequence[int], probabilities: Sequence[float] | None = None) -> tuple[Step, ...]:
        """The steps of sentence `i` from row `first`, after which `ids` followed; `probabilities` as in `steps_of`, of the last
        of them."""
        if not ids:
            return ()
        early = self._early[i][first : first + len(ids)] if self._early else []
        drawn = [None] * (len(ids) - len(probabilities)) + list(probabilities) if probabilities else None
        start, n = first + len(early) - self._n_early, len(ids) - len(early)
        late = self._steps(self._rest[i, start : start + n], ids[len(early) :], drawn and drawn[len(early) :])
        if drawn:
            early = [replace(step, sampling_probability=each) for step, each in zip(early, drawn, strict=False)]
        return (*early, *late)

    @cached_property
    def _rest(self) -> Tensor:
        """What was not looked at yet, on the CPU: logits (batch, row, vocabulary)."""
        return torch.stack(self._logits, 1).cpu() if self._logits else torch.empty(len(self._early), 0, 0)

    def _look(self) -> None:
        more = map(self._steps, self._rest, torch.stack(self._ids, 1).tolist())
        before = self._early or [[]] * len(self._rest)
        self._early = [[*old, *new] for old, new in zip(before, more, strict=True)]
        self._n_early += len(self._logits)
        self._logits.clear()
        self._ids.clear()
        del self._rest

    def _steps(
        self, logits: Tensor, written: Sequence[int], probabilities: Sequence[float | None] | None = None
    ) -> tuple[Step, ...]:
        return steps_of(logits, written, self.n_candidates, self._name, probabilities, with_ids=self._with_ids)


def steps_of(
    logits: Tensor,
    written: Sequence[int],
    n_candidates: int,
    name: Name,
    probabilities: Sequence[float | None] | None = None,
    *,
    with_ids: bool = False,
) -> tuple[Step, ...]:
    """One step for each id that was written.

    Args:
        logits: float (step, vocabulary), on the CPU.
        written: an id a step.
        n_candidates: how many of the most probable tokens each step keeps.
        name: of an id.
        probabilities: of what was written under the distribution that it was drawn from, if it was drawn.
        with_ids: whether a step says ids beside labels.
    """
    if not written:
        return ()
    best = rankings_of(logits, n_candidates)
    drawn = [None] * len(written) if probabilities is None else probabilities
    return tuple(
        Step(
            token=name(number),
            probability=probability,
            log_probability=log_probability,
            rank=rank,
            candidates=candidates,
            sampling_probability=chance,
            token_id=number if with_ids else None,
            candidate_ids=tuple(ids) if with_ids else (),
        )
        for number, (rank, log_probability, probability), candidates, ids, chance in zip(
            written, _found(logits, written, best), best.named(name), best.ids, drawn, strict=True
        )
    )


class Rankings(NamedTuple):
    """The most probable tokens of each row, best first."""

    ids: list[list[int]]
    log_probabilities: list[list[float]]
    probabilities: list[list[float]]

    def named(self, name: Name) -> tuple[tuple[Candidate, ...], ...]:
        """With their probabilities."""
        return tuple([tuple(zip(map(name, ids), p, strict=True)) for ids, p in zip(self.ids, self.probabilities, strict=True)])


def rankings_of(logits: Tensor, n: int) -> Rankings:
    """The most probable tokens after each row of logits (row, vocabulary)."""
    exact = logits.double().log_softmax(-1)
    # One more shows whether the last one ties with it. To sort whole rows would take three times as long.
    found, ids = exact.topk(min(n + 1, exact.shape[-1]))
    logs = found.tolist()
    descend = [all(map(gt, row, row[1:])) for row in logs]
    # Not so with a tie, or with a number that is none.
    if not all(descend):
        ids = _order(logits)[:, : n + 1]
        found = exact.gather(-1, ids)
        logs = found.tolist()
    # What has a logit of −∞ is impossible, and never listed.
    kept = [row.index(-math.inf, 0, n) if -math.inf in row[:n] else n for row in logs]
    return Rankings(
        [row[:k] for row, k in zip(ids.tolist(), kept, strict=True)],
        [row[:k] for row, k in zip(logs, kept, strict=True)],
        [row[:k] for row, k in zip(found.exp().tolist(), kept, strict=True)],
    )


def _found(logits: Tensor, written: Sequence[int], best: Rankings) -> list[tuple[int, float, float]]:
    """Rank, log-probability and probability of what was written; nearly always it is in `best`, of the same rows."""
    found = [
        (place := ids.index(number), logs[place], probabilities[place]) if number in ids else None
        for number, ids, logs, probabilities in zip(written, *best, strict=True)
    ]
    missing = [t for t, known in enumerate(found) if known is None]
    others = iter(_elsewhere(logits[missing], [written[t] for t in missing]) if missing else ())
    return [next(others) if known is None else known for known in found]


def _elsewhere(logits: Tensor, written: Sequence[int]) -> list[tuple[int, float, float]]:
    own = torch.tensor(written)[:, None]
    ranks = (_order(logits) == own).int().argmax(-1)
    logs = logits.double().log_softmax(-1).gather(-1, own)[:, 0]
    return list(zip(ranks.tolist(), logs.tolist(), logs.exp().tolist(), strict=True))


def _order(logits: Tensor) -> Tensor:
    return logits.sort(dim=-1, descending=True, stable=True).indices
