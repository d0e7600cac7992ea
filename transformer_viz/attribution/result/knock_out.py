"""What runs lose without each head, and without two at once, as numbers over texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from transformer_viz.addresses import HeadPlace
from transformer_viz.analysis.intervals import Mean, mean_over_texts, wilson
from transformer_viz.numbers_in_words import count_words
from transformer_viz.terms import Kind
from transformer_viz.text_table import text_table

HeadSet = frozenset[HeadPlace]


@dataclass(frozen=True)
class Outcome:
    """The texts without some heads.

    Attributes:
        log_p: of each text (step,), how much the log-probability of each token of the answer changes, in nats; below 0, it is
            less probable.
        is_exact: (text,), whether greedy decoding still writes the answer.
    """

    log_p: tuple[np.ndarray, ...]
    is_exact: np.ndarray


@dataclass(frozen=True)
class HeadEffect:
    """Without one head; means over texts with their intervals.

    Attributes:
        place: the head.
        log_p: how much each token of the answers loses, in nats.
        exact: the share of texts that are still written.
        stays: of the answers that are written with all heads, the share that is written without this one, too; NaN where there
            are none.
    """

    place: HeadPlace
    log_p: Mean
    exact: Mean
    stays: Mean


@dataclass(frozen=True)
class KnockOut:
    """Every head ablated alone.

    Attributes:
        how: what stands in the place of a head.
        n_texts: how many.
        n_known: texts of which the true answer is known; of the others it is what the run wrote.
        exact_before: with all heads.
        heads: by kind, layer and head.
    """

    how: str
    n_texts: int
    n_known: int
    exact_before: Mean
    heads: tuple[HeadEffect, ...]

    def at(self, kind: Kind, layer: int, head: int) -> HeadEffect:
        """One head; counts from 0."""
        return next(each for each in self.heads if each.place == HeadPlace(kind, layer, head))

    def __str__(self) -> str:
        """What was done, and a table of all heads."""
        answers = "the answer" if self.n_known else "what was written"
        answers = "the true answer" if self.n_known == self.n_texts else answers
        rows = [("all heads", str(self.exact_before), "")]
        rows += [(str(each.place), str(each.exact), str(each.log_p)) for each in self.heads]
        title = f"{count_words(self.n_texts, 'text')}, {answers}; in the place of a head: {self.how}"
        return f"{title}\n{text_table(('', 'still written', 'change of log p a token'), rows)}"


def effects(found: Mapping[HeadSet, Outcome], seed: int) -> tuple[HeadEffect, ...]:
    """Of heads that were ablated alone."""
    alone = {place: outcome for places, outcome in found.items() if len(places) == 1 for place in places}
    before = found[frozenset()].is_exact
    return tuple(
        HeadEffect(place, mean_over_texts(each.log_p, seed), exact(each), _share(each.is_exact[before]))
        for place, each in alone.items()
    )


def exact(outcome: Outcome) -> Mean:
    """The share of texts that are still written."""
    return _share(outcome.is_exact)


def _share(is_so: np.ndarray) -> Mean:
    """Of texts, which are independent, with Wilson's interval: resampling would give no width where all are alike."""
    n, hits = len(is_so), int(is_so.sum())
    return Mean(hits / n if n else np.nan, wilson(hits, n) if n > 1 else None)


def interactions(found: Mapping[HeadSet, Outcome], places: Sequence[HeadPlace]) -> np.ndarray:
    """(head, head): Δ(ab) − Δ(a) − Δ(b) of the mean change of log p, in nats; zeros on the diagonal.

    Below 0, the two are worse to lose together than their losses add up to: each can do the other's work.
    """
    change = {places: float(np.concatenate(each.log_p).mean()) for places, each in found.items()}
    together = np.zeros((len(places), len(places)))
    for i, j in combinations(range(len(places)), 2):
        a, b = frozenset({places[i]}), frozenset({places[j]})
        together[i, j] = together[j, i] = change[a | b] - change[a] - change[b]
    return together
