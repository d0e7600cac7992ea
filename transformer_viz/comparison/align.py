"""Compares lists of two runs position by position: tokens, numbers and candidates, and how far apart they are."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from transformer_viz.trace.steps import Candidate


def differing_places(a: Sequence[Any], b: Sequence[Any]) -> list[int]:
    """The positions at which two lists differ, those that only the longer list has included."""
    return [i for i, (x, y) in enumerate(zip_longest(a, b, fillvalue=object())) if x != y]


def first_difference(a: Sequence[Any], b: Sequence[Any]) -> int | None:
    """The first of them, or None where the lists are equal."""
    return next(iter(differing_places(a, b)), None)


def common(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The queries and keys that both have."""
    n_queries, n_keys = min(a.shape[-2], b.shape[-2]), min(a.shape[-1], b.shape[-1])
    return a[..., :n_queries, :n_keys], b[..., :n_queries, :n_keys]


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """|b − a| in float64; 0 where both are the same or both NaN, infinite where one alone is NaN."""
    with np.errstate(invalid="ignore"):
        size = np.subtract(b, a, dtype=np.float64)
    np.abs(size, out=size)
    unknown = np.isnan(size)
    if unknown.any():
        size[unknown] = np.where(np.isnan(a[unknown]) == np.isnan(b[unknown]), 0, np.inf)
    return size


def signed_size(a: float, b: float) -> float:
    """b − a of two numbers that differ; +∞ where b is not a number, −∞ where a is none."""
    return math.inf if math.isnan(b) else -math.inf if math.isnan(a) else b - a


def largest(sizes: np.ndarray) -> tuple[int, ...]:
    """The place of the largest number; of equal ones the first."""
    return tuple(int(i) for i in np.unravel_index(int(sizes.argmax()), sizes.shape))


def paired(a: Sequence[Candidate], b: Sequence[Candidate]) -> list[tuple[str, float, float]]:
    """Token and its probability in both lists.

    A token that only one list has is at most as probable as the last one of the other, so this is taken for its
    probability there, unless it is higher.
    """

    def by_token(candidates: Sequence[Candidate]) -> dict[tuple[str, int], float]:
        """Probabilities by token and its number among equal tokens, since a file may name one token twice."""
        seen: Counter[str] = Counter()
        pairs = {}
        for token, p in candidates:
            pairs[token, seen[token]] = p
            seen[token] += 1
        return pairs

    first, second = by_token(a), by_token(b)
    paired = []
    for key in [*first, *(key for key in second if key not in first)]:
        p, q = first.get(key), second.get(key)
        if p is None and a:
            p = min(a[-1][1], q if q is not None else 1.0)
        if q is None and b:
            q = min(b[-1][1], p if p is not None else 1.0)
        if p is not None and q is not None:
            paired.append((key[0], p, q))
    return paired
