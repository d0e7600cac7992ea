"""What differs between two runs of the same source: outputs, probabilities, attention."""

from dataclasses import dataclass

import numpy as np

from transformer_viz.analysis.heads import Head, head_map
from transformer_viz.errors import OptionError, listed
from transformer_viz.terms import KINDS, Kind
from transformer_viz.trace.trace import Trace


@dataclass(frozen=True)
class Largest:
    """The largest absolute difference of a weight, and where; places count from 0."""

    size: float
    kind: Kind
    layer: int
    head: int
    query: int
    key: int


def first_difference(before: Trace, after: Trace) -> int | None:
    """The first step at which the outputs part, or None where they are equal."""
    for t, (a, b) in enumerate(zip(before.output_tokens, after.output_tokens, strict=False)):
        if a != b:
            return t
    shorter = min(len(before.output_tokens), len(after.output_tokens))
    return None if len(before.output_tokens) == len(after.output_tokens) else shorter


def difference_map(before: Trace, after: Trace, kind: Kind, layer: int, head: Head) -> np.ndarray:
    """after − before, (query, key), for the queries and keys that both have; NaN where either is not a number."""
    a, b = head_map(before, kind, layer, head), head_map(after, kind, layer, head)
    n_queries, n_keys = min(len(a), len(b)), min(a.shape[1], b.shape[1])
    return b[:n_queries, :n_keys] - a[:n_queries, :n_keys]


def largest_difference(before: Trace, after: Trace) -> Largest | None:
    """Over all kinds that both runs have; None where they are equal. A number that is none counts as infinitely far."""
    worst: Largest | None = None
    for kind in KINDS:
        a, b = before.attentions(kind), after.attentions(kind)
        if a is None or b is None:
            continue
        if a.shape[:2] != b.shape[:2]:
            raise OptionError(f"{kind}: {a.shape[:2]} and {b.shape[:2]} layers and heads cannot be compared")
        if (numbers := before.layer_numbers(kind)) != after.layer_numbers(kind):
            others = listed(after.layer_numbers(kind))
            raise OptionError(f"{kind}: layers {listed(numbers)} and {others} cannot be compared; keep the same ones")
        n_queries, n_keys = min(a.shape[2], b.shape[2]), min(a.shape[3], b.shape[3])
        size = np.abs(np.subtract(b[..., :n_queries, :n_keys], a[..., :n_queries, :n_keys], dtype=np.float32))
        size = np.nan_to_num(size, nan=np.inf)
        place, head, query, key = (int(i) for i in np.unravel_index(int(size.argmax()), size.shape))
        if size.max() > (worst.size if worst else 0.0):
            worst = Largest(float(size.max()), kind, numbers[place], head, query, key)
    return worst


def weight_on(trace: Trace, kind: Kind, cells: np.ndarray) -> float:
    """The mean, over layers, heads and the rows that have such cells, of the weight on `cells`, bool (query, key).

    Rows that are not numbers are left out; 0 where there is no such row.
    """
    weights = trace.attentions(kind)
    rows = cells.any(-1)
    if weights is None or not rows.any():
        return 0.0
    on = np.where(cells, weights, 0).sum(-1, dtype=np.float32)[..., rows]
    on = on[np.isfinite(on)]
    return float(on.mean()) if on.size else 0.0
