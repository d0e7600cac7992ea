"""Reads numbers off a survey: those by which heads are compared, and the calibration of the model's confidence."""

from dataclasses import dataclass

import numpy as np

from transformer_viz.addresses import HeadPlace
from transformer_viz.analysis.intervals import Interval, wilson
from transformer_viz.errors import OptionError, join_names
from transformer_viz.surveys.result import ROLE, Confidence, Survey, SurveyedStatistic
from transformer_viz.terms import Kind


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


def best(survey: Survey, name: str) -> HeadPlace | None:
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
