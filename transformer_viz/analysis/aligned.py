"""Two runs' numbers laid beside each other: differences of arrays, common parts, candidates paired by their token."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from transformer_viz.trace.trace import Candidate


def sizes(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """b − a in float64; 0 where both are the same or both NaN, ±∞ where one alone is NaN (+ where it is b)."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        size = np.where(a == b, 0.0, b - a)
    a_is_none, b_is_none = np.isnan(a), np.isnan(b)
    return np.where(a_is_none & b_is_none, 0.0, np.where(b_is_none, np.inf, np.where(a_is_none, -np.inf, size)))


def common(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The queries and keys that both have."""
    n_queries, n_keys = min(a.shape[-2], b.shape[-2]), min(a.shape[-1], b.shape[-1])
    return a[..., :n_queries, :n_keys], b[..., :n_queries, :n_keys]


def n_alike(a: Sequence[str], b: Sequence[str]) -> int:
    """How many tokens from the beginning are equal."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def paired(a: Sequence[Candidate], b: Sequence[Candidate]) -> list[tuple[str, float, float]]:
    """Token and its probability in both lists.

    A token that only one list has is at most as probable as the last one of the other, so this is taken for its
    probability there, unless it is higher.
    """
    first, second = _by_token(a), _by_token(b)
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


def _by_token(candidates: Sequence[Candidate]) -> dict[tuple[str, int], float]:
    """By token and how often it came before, since nothing forbids a file to name one twice."""
    seen: Counter[str] = Counter()
    found = {}
    for token, p in candidates:
        found[token, seen[token]] = p
        seen[token] += 1
    return found
