"""95 % intervals: of a share, of a mean, of a difference, and of a mean over texts whose steps depend on each other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from transformer_viz.numbers_in_words import interval_words
from transformer_viz.schema import Range
from transformer_viz.text_table import number_cell

Z_95 = 1.959963984540054
"""The normal distribution's 0.975 quantile."""
Z_ROUNDED = 1.96
"""The quantile as surveys round it: their intervals are mean ± 1.96 standard errors."""
DRAWS = 1000
"""Resampled sets of texts in a bootstrap."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Mean:
    """A mean over steps or texts.

    Attributes:
        value: NaN where there are none.
        interval: in which 95 % of the means of resampled texts are; None of a single text.
    """

    value: Annotated[float, Range(has_nan=True)]
    interval: tuple[float, float] | None = None

    def is_from(self, least: float) -> bool:
        """Tells whether the mean and its interval, which is in order, are from `least` to 1, rounding aside; NaN is."""
        low, high = self.interval or (self.value, self.value)
        return not (low > high or min(low, self.value) < least - 1e-6 or max(high, self.value) > 1 + 1e-6)

    @property
    def ends(self) -> tuple[float, float] | None:
        """The interval where it says something: resampling texts that are all alike gives no width, however few they are."""
        return None if self.interval is None or self.interval[0] == self.interval[1] else self.interval

    def __str__(self) -> str:
        """`0.983 (0.981 to 0.985)`, for a table."""
        return number_cell(self.value) + (f" ({interval_words(self.ends, number_cell)})" if self.ends else "")


def wilson(hits: int, n: int) -> Interval:
    """The interval of a share, hits of n (Wilson 1927, score interval without continuity correction), within 0 and 1.

    Unlike hits/n ± z·√(p(1−p)/n) it has a width where all or none are right.
    """
    assert n > 0 and 0 <= hits <= n
    share, z2 = hits / n, Z_95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    # At 0 and n the bound is exactly the share; rounding would put it beside.
    return (0.0 if hits == 0 else max(0.0, centre - half)), (1.0 if hits == n else min(1.0, centre + half))


def normal(mean: Any, sd: Any, n: Any) -> Interval:
    """The interval of the mean of n independent values with this standard deviation, by the normal approximation."""
    half = Z_ROUNDED * sd / n**0.5
    return mean - half, mean + half


def difference(a: float, interval_a: Interval, b: float, interval_b: Interval) -> Interval:
    """The interval of b − a, from the intervals of both, which are independent.

    Newcombe 1998, "Interval estimation for the difference between independent proportions", method 10; of means it is the
    normal approximation.
    """
    below = math.hypot(b - interval_b[0], interval_a[1] - a)
    above = math.hypot(interval_b[1] - b, a - interval_a[0])
    return b - a - below, b - a + above


def bootstrap(sums: np.ndarray, counts: np.ndarray, seed: int) -> Interval:
    """The interval of a mean over all steps of all texts, by resampling the texts (Efron 1979).

    The steps of one text depend on each other.

    Args:
        sums: (text,), of the values of a text's steps.
        counts: (text,), how many these are.
        seed: of the resampling.
    """
    drawn = np.random.default_rng(seed).integers(0, len(sums), (DRAWS, len(sums)))
    n = counts[drawn].sum(1)
    low, high = np.percentile(sums[drawn].sum(1)[n > 0] / n[n > 0], (2.5, 97.5))
    return float(low), float(high)


def mean_over_texts(values: Sequence[np.ndarray | Sequence[float]], seed: int) -> Mean:
    """The mean over all steps of all texts, NaN left out; its interval by `bootstrap`. A text is (step,)."""
    sums = np.array([np.nansum(text_values) for text_values in values])
    counts = np.array([np.isfinite(text_values).sum() for text_values in values])
    if not counts.sum():
        return Mean(np.nan)
    value = float(sums.sum() / counts.sum())
    if len(values) == 1:
        return Mean(value)
    return Mean(value, bootstrap(sums, counts, seed))
