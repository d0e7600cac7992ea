"""Reads numbers off a survey: those by which heads are compared, and the calibration of the model's confidence.

`compare_surveys` tells how far each head's number differs between two surveys, and whether by more than chance.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from transformer_viz.addresses import HeadAddress
from transformer_viz.analysis.intervals import Interval, difference, wilson
from transformer_viz.errors import OptionError, join_names
from transformer_viz.surveys.result import ROLE, Confidence, HeadStatistic, Survey, SurveyedStatistic
from transformer_viz.terms import Kind

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Bin:
    """A bin of written tokens by their probability, of tokens whose right answer is known.

    Attributes:
        low: lower end of the bin.
        high: upper end.
        n: tokens.
        confidence: their mean probability.
        accuracy: the share of them that are right.
        interval: of that share, 95 % (Wilson).
    """

    low: float
    high: float
    n: int
    confidence: float
    accuracy: float
    interval: Interval


def columns(survey: Survey) -> dict[str, SurveyedStatistic]:
    """Every number that heads of the survey can be compared by: its statistics, then the roles that any head has."""
    names = {row.statistic for row in survey.heads}
    numbers = [of for of in survey.statistics if of.name in names]
    for name in sorted(name for name in names if name.startswith(ROLE)):
        title, words = f"texts in which it is “{name.removeprefix(ROLE)}”", "Share of the texts in which the head has this role"
        numbers.append(SurveyedStatistic(name=name, title=title, help=words, is_share=True, edges=(0.0, 0.5, 1.0)))
    return {number.name: number for number in numbers}


def column(survey: Survey, name: str) -> SurveyedStatistic:
    """One of them.

    Raises:
        OptionError: the survey has no such number.
    """
    if name not in (known := columns(survey)):
        raise OptionError(f"{name!r} is no number of this survey; choose one of {join_names(known)}")
    return known[name]


def values(survey: Survey, kind: Kind, name: str) -> np.ndarray:
    """(layer, head) float64, NaN where a head has no such number; layers in the order of `survey.kinds`."""
    rows = [survey.at(place, name) for place in survey.places if place.kind == kind]
    of = survey.kinds[kind]
    return np.array([np.nan if row is None else row.mean for row in rows]).reshape(len(of.layers), of.n_heads)


def kinds(survey: Survey, name: str) -> tuple[Kind, ...]:
    """The kinds of which some head has such a number."""
    there = {place.kind for place in survey.places if survey.at(place, name) is not None}
    return tuple(kind for kind in survey.kinds if kind in there)


def best(survey: Survey, name: str) -> HeadAddress | None:
    """The head with the highest number, the first of equal ones; None where none has such a number."""
    rows = [row for place in survey.places if (row := survey.at(place, name)) is not None]
    return max(rows, key=lambda row: row.mean).place if rows else None


def calibration(confidence: Confidence) -> tuple[list[Bin], float | None]:
    """The bins in which tokens were judged, and the expected calibration error: how far confidence and accuracy are apart, on
    average over tokens (Guo et al. 2017, "On calibration of modern neural networks"). None where none was judged."""
    columns = (confidence.edges, confidence.edges[1:], confidence.n_judged, confidence.sum_p, confidence.n_right)
    bins = [
        Bin(low, high, n, total / n, right / n, wilson(right, n))
        for low, high, n, total, right in zip(*columns, strict=False)
        if n
    ]
    n_all = sum(each.n for each in bins)
    error = sum(each.n * abs(each.accuracy - each.confidence) for each in bins) / n_all if n_all else None
    return bins, error


@dataclass(frozen=True)
class HeadChange:
    """One head in both surveys.

    Attributes:
        place: which head.
        a: its number in the first.
        b: in the second.
    """

    place: HeadAddress
    a: HeadStatistic
    b: HeadStatistic

    @property
    def difference(self) -> float:
        """b − a."""
        return self.b.mean - self.a.mean

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of b − a, as if the texts of both were drawn independently."""
        return difference(self.a.mean, self.a.interval, self.b.mean, self.b.interval)

    @property
    def is_significant(self) -> bool:
        """Tells whether the interval of the difference leaves 0 out."""
        low, high = self.interval
        return low > 0 or high < 0


@dataclass(frozen=True)
class SurveyComparison:
    """Every head that has the number in both surveys, in the order of the first.

    Attributes:
        column: what is compared.
        heads: one each.
        is_same_texts: whether both surveyed the same texts; the intervals are cautious then.
    """

    column: SurveyedStatistic
    heads: tuple[HeadChange, ...]
    is_same_texts: bool

    @property
    def largest(self) -> HeadChange | None:
        """The head that differs most among those whose interval leaves 0 out; None where there is none."""
        return max(self.significant(), key=lambda head: abs(head.difference), default=None)

    def significant(self) -> Iterator[HeadChange]:
        """The heads whose interval leaves 0 out."""
        return (head for head in self.heads if head.is_significant)

    def of(self, kind: Kind) -> list[HeadChange]:
        """The heads of a kind."""
        return [head for head in self.heads if head.place.kind == kind]

    def to_frame(self) -> "pd.DataFrame":
        """One row a head."""
        import pandas as pd

        rows = [
            (head.place.kind, head.place.layer, head.place.head, head.a.mean, head.b.mean, head.difference, *head.interval)
            for head in self.heads
        ]
        return pd.DataFrame(rows, columns=["kind", "layer", "head", "a", "b", "difference", "low", "high"])


def compare_surveys(a: Survey, b: Survey, name: str) -> SurveyComparison:
    """Subtracts one number of survey `a` from that of survey `b`, head by head.

    Args:
        a: the first survey.
        b: the second, of a model with as many layers and heads of each kind.
        name: a number that both have, by its name in `columns`; a role that no head of one survey has counts as 0 there.

    Returns:
        The difference of each head, with its interval.

    Raises:
        OptionError: the sizes differ, or neither has such a number.

    Example:
        >>> import transformer_viz as tv
        >>> a, b = (tv.survey("reverse-small", texts, workers=1, verdict_texts=0) for texts in (["hello"], ["planet"]))
        >>> found = tv.compare_surveys(a, b, "mass")
        >>> len(found.to_frame()) > 0
        True
    """
    if dict(a.kinds) != dict(b.kinds):
        raise OptionError(
            f"{a.model.name} and {b.model.name} differ in their numbers of layers or heads, so that no head of one is one of "
            "the other; compare surveys of one model, or of models of the same sizes."
        )
    compared = column(a if name in columns(a) else b, name)
    pairs = [(place, a.at(place, name), b.at(place, name)) for place in a.places]
    changes = [HeadChange(place, first, second) for place, first, second in pairs if first is not None and second is not None]
    return SurveyComparison(compared, tuple(changes), a.texts.digest == b.texts.digest)
