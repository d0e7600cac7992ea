"""What logits say of the tokens that were written: how probable each was, its rank, and what was as probable or more.

Natural probabilities, in double precision: in float32 one of 1 − 10⁻⁹ would be 1. The order is that in which decoding
chooses: by logit, since log-probabilities can round to a tie; of equal logits the lowest id first.

Everything ends in lists, since numbers one by one out of tensors take as long as a step of decoding.
"""

from collections.abc import Callable, Sequence
from operator import gt
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_viz.trace.trace import Candidate, Step

Name = Callable[[int], str]
"""From an id to its token."""


def steps_of(
    logits: Tensor, written: Sequence[int], n_candidates: int, name: Name, probabilities: Sequence[float] | None = None
) -> tuple[Step, ...]:
    """One step for each id that was written.

    Args:
        logits: float (step, vocabulary), on the CPU.
        written: an id a step.
        n_candidates: how many of the most probable tokens each step keeps.
        name: of an id.
        chances: of what was written under the distribution that it was drawn from, if it was drawn.
    """
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
        )
        for number, (rank, log_probability, probability), candidates, chance in zip(
            written, _found(logits, written, best), _named(best, n_candidates, name), drawn, strict=True
        )
    )


def candidates_of(logits: Tensor, n: int, name: Name) -> tuple[tuple[Candidate, ...], ...]:
    """The most probable tokens after each row of logits (row, vocabulary), with their probabilities, best first."""
    return tuple(_named(_most_probable(logits, n), n, name))


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
    rows = zip(best.ids, best.probabilities, strict=True)
    return [tuple(zip(map(name, ids[:n]), probabilities, strict=False)) for ids, probabilities in rows]


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


def _descends(row: list[float]) -> bool:
    """Without a tie, and without a number that is none."""
    return all(map(gt, row, row[1:]))


def _order(logits: Tensor) -> Tensor:
    return logits.sort(dim=-1, descending=True, stable=True).indices
