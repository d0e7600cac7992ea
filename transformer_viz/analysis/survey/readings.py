"""What is read off a survey: one number of every head with its interval, roles by share, and calibration."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from transformer_viz.analysis.intervals import wilson
from transformer_viz.analysis.survey.result import Confidence, Survey, SurveyedHead
from transformer_viz.errors import OptionError, listed
from transformer_viz.terms import Kind

_ROLE = "role "


@dataclass(frozen=True)
class Reading:
    """A number that heads are compared by.

    Attributes:
        name: of a statistic, or `role mirror` for the share of texts in which a head has that role.
        title: what it is called.
        help: what it is, in a sentence.
        is_share: whether it lies between 0 and 1.
        role: the role, where it is one's share.
    """

    name: str
    title: str
    help: str
    is_share: bool
    role: str | None = None


@dataclass(frozen=True)
class Estimate:
    """A head's number over the texts of a survey.

    Attributes:
        value: the mean, or the share of texts.
        low: of its 95 % interval: of a mean by the normal approximation, of a share Wilson's.
        high: likewise.
        n: texts that have it.
        even: the same of uniform attention, where it is known.
    """

    value: float
    low: float
    high: float
    n: int
    even: float | None = None


@dataclass(frozen=True)
class Bin:
    """Written tokens whose probability lies in one bin, where what is right is known.

    Attributes:
        low: end of the bin.
        high: likewise.
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
    interval: tuple[float, float]


def readings(survey: Survey) -> dict[str, Reading]:
    """Every number that heads of the survey can be compared by: its statistics, then the roles that any head has."""
    known = {name for head in survey.heads for name, found in head.statistics.items() if found is not None}
    found = [Reading(each.name, each.title, each.help, each.is_share) for each in survey.statistics if each.name in known]
    roles = sorted({role for head in survey.heads for role, n in head.roles.items() if n})
    found += [
        Reading(
            _ROLE + role, f"texts in which it is “{role}”", "Share of the texts in which the head has this role", True, role
        )
        for role in roles
    ]
    return {each.name: each for each in found}


def reading(survey: Survey, name: str) -> Reading:
    """One of them.

    Raises:
        OptionError: the survey has no such number.
    """
    if name not in (known := readings(survey)):
        raise OptionError(f"{name!r} is no number of this survey; choose one of {listed(known)}")
    return known[name]


def estimate(head: SurveyedHead, name: str) -> Estimate | None:
    """A head's number; None where it has none."""
    if name.startswith(_ROLE):
        n, hits = sum(head.roles.values()), head.roles.get(name.removeprefix(_ROLE), 0)
        return Estimate(hits / n, *wilson(hits, n), n) if n else None
    found = head.statistics.get(name)
    return None if found is None else Estimate(found.mean, found.low, found.high, found.n, found.even)


def values(survey: Survey, kind: Kind, name: str) -> np.ndarray:
    """(layer, head) float64, NaN where a head has no such number; layers in the order of `survey.kinds`."""
    sizes = survey.kinds[kind]
    found = np.full((len(sizes.layers), sizes.n_heads), np.nan)
    for head in of_kind(survey, kind):
        if (known := estimate(head, name)) is not None:
            found[sizes.layers.index(head.layer), head.head] = known.value
    return found


def kinds(survey: Survey, name: str) -> tuple[Kind, ...]:
    """The kinds of which some head has such a number."""
    return tuple(kind for kind in survey.kinds if any(estimate(head, name) is not None for head in of_kind(survey, kind)))


def of_kind(survey: Survey, kind: Kind) -> Iterable[SurveyedHead]:
    """The heads of a kind."""
    return (head for head in survey.heads if head.kind == kind)


def best(survey: Survey, name: str) -> SurveyedHead | None:
    """The head with the highest number, the first of equal ones; None where none has such a number."""
    known = [(found.value, head) for head in survey.heads if (found := estimate(head, name)) is not None]
    return max(known, key=lambda each: each[0], default=(0.0, None))[1]


def roles(head: SurveyedHead) -> list[tuple[str, float]]:
    """The roles that a head has, and in which share of the texts, the most frequent first."""
    n = sum(head.roles.values())
    return sorted(((role, hits / n) for role, hits in head.roles.items() if hits), key=lambda role: (-role[1], role[0]))


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
