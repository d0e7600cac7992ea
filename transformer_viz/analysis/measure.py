"""The class `Measure`, which computes one number for each head, and the data that it gets from one or many runs.

`measures/` has one file for each measure.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from transformer_viz.analysis.query_rows import entropies, judged_rows, mean_over, uniform_weights
from transformer_viz.analysis.token_roles import NONE, Positions
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace


@dataclass(frozen=True, eq=False)
class HeadRows:
    """The data of a measure: the rows of all heads of one kind, of one run or, with one more axis in front, of many.

    Attributes:
        kind: of attention.
        weights: float64 (…, layer, head, query, key); zeros in rows that are left out. Of uniform attention an axis is 1 where
            all layers or heads are alike.
        allowed: bool (…, layer or 1, head or 1, query, key).
        rows: bool (…, layer or 1, head or 1, query); those that are judged.
        positions: what is known of the tokens.
        is_uniform: whether the weights are those of uniform attention over each row's allowed keys, the baseline.
    """

    kind: Kind
    weights: np.ndarray
    allowed: np.ndarray
    rows: np.ndarray
    positions: Positions
    is_uniform: bool = False

    @classmethod
    def of(cls, trace: Trace, kind: Kind, layers: slice = slice(None)) -> "HeadRows":
        """One run, of all layers or some; its weights as they are."""
        weights, masked, rows = trace.attentions[kind].weights, trace.attentions[kind].mask, judged_rows(trace, kind)[layers]
        exact = np.where(rows[..., None], weights[layers], 0).astype(np.float64)
        return cls(kind, exact, ~(masked[None, None] if masked.ndim == 2 else masked[layers]), rows, Positions.of(trace, kind))

    def uniform(self) -> "HeadRows":
        """The same rows with uniform attention over their allowed keys."""
        return replace(self, weights=uniform_weights(self.allowed), is_uniform=True)

    def mean(self, values: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
        """The mean of (…, layer, head, query) over the judged rows, or those of them that `of` marks; NaN where none is."""
        return mean_over(values, self.rows if of is None else self.rows & of)

    def weight_on(self, keys: np.ndarray) -> np.ndarray:
        """The weight that each row has on a key of its own, int (…, query) -> (…, layer, head, query); 0 where that is NONE."""
        return self.weights_on(keys[..., None])[..., 0]

    def weights_on(self, keys: np.ndarray) -> np.ndarray:
        """The weight that each row has on each of several keys, int (…, query, any) -> (…, layer, head, query, any)."""
        n_queries, n_keys = self.weights.shape[-2:]
        before = self.weights.shape[:-2]
        # Places in memory, which is several times as fast as an index for each axis.
        rows = np.arange(np.prod(before) * n_queries).reshape(*before, n_queries, 1) * n_keys
        at = keys[..., None, None, :, :]
        return np.where(at >= 0, self.weights.take(rows + np.maximum(at, 0)), 0.0)

    @property
    def true_keys(self) -> np.ndarray | None:
        """int (…, query), NONE in rows that have no true key; None where this kind has none, or no row of any run."""
        keys = self.positions.true
        return keys if self.kind == "cross" and (keys != NONE).any() else None

    @cached_property
    def has_choice(self) -> np.ndarray:
        """bool (…, layer or 1, head or 1, query); rows with two allowed keys or more."""
        return self.n_allowed > 1

    @cached_property
    def n_allowed(self) -> np.ndarray:
        """int (…, layer or 1, head or 1, query)."""
        return self.allowed.sum(-1)

    @cached_property
    def entropy(self) -> np.ndarray:
        """The entropy of each row in nats, (…, layer, head, query)."""
        return entropies(self.weights)

    @cached_property
    def entropy_share(self) -> np.ndarray:
        """The entropy as a share of the largest possible; of rows with a choice."""
        return self.entropy / np.log(np.maximum(self.n_allowed, 2))

    @cached_property
    def largest(self) -> np.ndarray:
        """The largest weight of each row, (…, layer, head, query)."""
        return self.weights.max(-1)

    @cached_property
    def top(self) -> np.ndarray:
        """The key with the largest weight, int (…, layer, head, query); of equal ones the lowest."""
        return self.weights.argmax(-1)


def by_head(rows: np.ndarray) -> np.ndarray:
    """(…, query), the same for all heads -> (…, 1, 1, query)."""
    return rows[..., None, None, :]


@dataclass(frozen=True)
class Measure:
    """One number of every head.

    Attributes:
        of: the function that computes it, float64 (…, layer, head), NaN where a head has no number; or None for a kind without.
        column: its heading in a table; a word or two.
        title: its name beside the number.
        help: its meaning, in a sentence.
        order: its place in lists, any number; measures with one number are sorted by name.
        is_share: whether it lies between 0 and 1, so that tiles can be tinted by it.
        missing: why a kind of attention may have no such number.
        of_uniform: the number of uniform attention where it is always the same; then no baseline is listed.
        is_for_many: whether only surveys list it, and no table of one run.
    """

    of: Callable[[HeadRows], np.ndarray | None]
    column: str
    title: str
    help: str
    order: int
    is_share: bool = False
    missing: str = "no row to judge"
    of_uniform: float | None = None
    is_for_many: bool = False
