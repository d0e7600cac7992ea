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
from transformer_viz.tracing.trace_size import BLOCK

Name = Callable[[int], str]
"""From an id to its token."""


class RankedRows:
    """The steps of a batch, from logits that come row by row: they are looked at in blocks, and not all kept.

    Args:
        n_candidates: how many of the most probable tokens each step keeps.
        name: of an id.
        with_ids: whether steps say ids beside labels.
    """

    def __init__(self, n_candidates: int, name: Name, *, with_ids: bool = False) -> None:
        self.n_candidates, self._name, self._with_ids = n_candidates, name, with_ids
        self._pending: list[tuple[Tensor, Tensor]] = []
        self._early: list[list[Step]] = []
        self._n_early = 0
        self._are_early_sound: list[bool] = []

    def __call__(self, logits: Tensor, ids: Tensor) -> None:
        """One row more of every sentence: logits (batch, vocabulary), and the ids (batch,) that followed."""
        self._pending.append((logits, ids))
        if len(self._pending) * logits.numel() > BLOCK:
            self._look()

    def whole(self, logits: Tensor, ids: Tensor) -> None:
        """All rows at once: logits (batch, row, vocabulary), ids (batch, row)."""
        if logits.numel() > BLOCK:
            for each in zip(logits.unbind(1), ids.unbind(1), strict=True):
                self(*each)
        else:
            self._rest = logits.cpu(), ids.tolist()

    def of(self, i: int, first: int, n_rows: int, probabilities: Sequence[float] | None = None) -> tuple[Step, ...]:
        """The steps of sentence `i`, so many from row `first`; `probabilities` as in `steps_of`, of the last of them."""
        if not n_rows:
            return ()
        early = self._early[i][first : first + n_rows] if self._early else []
        rows = self._rows(first + len(early), n_rows - len(early))
        logits, ids = self._rest
        drawn = [None] * (n_rows - len(probabilities)) + list(probabilities) if probabilities else None
        late = self._steps(logits[i, rows], ids[i][rows], drawn and drawn[len(early) :])
        if drawn:
            early = [replace(step, sampling_probability=each) for step, each in zip(early, drawn, strict=False)]
        return (*early, *late)

    def is_sound(self, i: int, first: int, n_rows: int) -> bool:
        """Whether all its logits in these rows are numbers. Other people's models say −∞ of what they never write."""
        if not n_rows:
            return True
        n_early = min(max(0, self._n_early - first), n_rows)
        are_early_sound = not self._are_early_sound or self._are_early_sound[i]
        return are_early_sound and self._sound(self._rest[0][i, self._rows(first + n_early, n_rows - n_early)])

    @cached_property
    def _rest(self) -> tuple[Tensor, list[list[int]]]:
        """What was not looked at yet, on the CPU: logits (batch, row, vocabulary), and ids."""
        if not self._pending:
            return torch.empty(len(self._early), 0, 0), [[]] * len(self._early)
        logits, ids = (torch.stack(each, 1).cpu() for each in zip(*self._pending, strict=True))
        return logits, ids.tolist()

    def _rows(self, first: int, n: int) -> slice:
        return slice(first - self._n_early, first - self._n_early + n)

    def _look(self) -> None:
        logits, ids = self._rest
        sound = [self._sound(rows) for rows in logits]
        more = [self._steps(rows, written) for rows, written in zip(logits, ids, strict=True)]
        before = self._early or [[]] * len(more)
        self._are_early_sound = [a and b for a, b in zip(self._are_early_sound or sound, sound, strict=True)]
        self._early = [[*old, *new] for old, new in zip(before, more, strict=True)]
        self._n_early += len(self._pending)
        self._pending.clear()
        del self._rest

    def _steps(
        self, logits: Tensor, written: Sequence[int], probabilities: Sequence[float | None] | None = None
    ) -> tuple[Step, ...]:
        return steps_of(logits, written, self.n_candidates, self._name, probabilities, with_ids=self._with_ids)

    def _sound(self, logits: Tensor) -> bool:
        if self._with_ids:
            return bool((logits < torch.inf).all() & logits.isfinite().any(-1).all())
        return bool(logits.isfinite().all())


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
    best = _most_probable(logits, n_candidates)
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
            candidate_ids=tuple(ids[: len(candidates)]) if with_ids else (),
        )
        for number, (rank, log_probability, probability), candidates, ids, chance in zip(
            written, _found(logits, written, best), _named(best, n_candidates, name), best.ids, drawn, strict=True
        )
    )


def candidates_of(logits: Tensor, n: int, name: Name) -> tuple[tuple[Candidate, ...], ...]:
    """The most probable tokens after each row of logits (row, vocabulary), with their probabilities, best first."""
    return tuple(_named(_most_probable(logits, n), n, name))


class Ranking(NamedTuple):
    """The most probable tokens of one row, best first."""

    ids: list[int]
    probabilities: list[float]

    def named(self, name: Name) -> tuple[Candidate, ...]:
        return tuple(zip(map(name, self.ids), self.probabilities, strict=True))


def rankings_of(logits: Tensor, n: int) -> list[Ranking]:
    """As `candidates_of`, by their ids."""
    best = _most_probable(logits, n)
    kept = [min(n, _n_possible(row)) for row in best.log_probabilities]
    return [Ranking(ids[:k], p[:k]) for ids, p, k in zip(best.ids, best.probabilities, kept, strict=True)]


class _Best(NamedTuple):
    """The most probable tokens of each row, best first; one more than was asked for, where there is one."""

    ids: list[list[int]]
    log_probabilities: list[list[float]]
    probabilities: list[list[float]]


def _most_probable(logits: Tensor, n: int) -> _Best:
    exact = logits.double().log_softmax(-1)
    # One more shows whether the last one ties with it. To sort whole rows would take three times as long.
    n_found = min(n + 1, exact.shape[-1])
    found, ids = exact.topk(n_found)
    logs = found.tolist()
    if not all(map(_descends, logs)):
        ids = _order(logits)[:, :n_found]
        found = exact.gather(-1, ids)
        logs = found.tolist()
    return _Best(ids.tolist(), logs, found.exp().tolist())


def _named(best: _Best, n: int, name: Name) -> list[tuple[Candidate, ...]]:
    rows = zip(best.ids, best.probabilities, map(_n_possible, best.log_probabilities), strict=True)
    return [tuple(zip(map(name, ids[: min(n, m)]), probabilities, strict=False)) for ids, probabilities, m in rows]


def _found(logits: Tensor, written: Sequence[int], best: _Best) -> list[tuple[int, float, float]]:
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


def _n_possible(log_probabilities: list[float]) -> int:
    """How many are possible at all: what has a logit of −∞ is never listed."""
    return log_probabilities.index(-math.inf) if -math.inf in log_probabilities else len(log_probabilities)


def _descends(row: list[float]) -> bool:
    """Without a tie, and without a number that is none."""
    return all(map(gt, row, row[1:]))


def _order(logits: Tensor) -> Tensor:
    return logits.sort(dim=-1, descending=True, stable=True).indices
