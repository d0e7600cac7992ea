"""What a measure of heads is, and what it is given: one number a head, from one run. `measures/` has one file each."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from transformer_viz.analysis.rows import mean_over
from transformer_viz.analysis.true_key import true_keys
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace


@dataclass(frozen=True)
class Judged:
    """One kind of attention of a run, as a measure is given it.

    Attributes:
        trace: the run.
        kind: of attention.
        weights: float64 (layer, head, query, key); of the run, with zeros in rows that are left out, or of uniform attention.
        allowed: bool, the same shape.
        rows: bool (layer, head, query); those that are judged.
        is_uniform: whether the weights are those of uniform attention over each row's allowed keys, the baseline.
    """

    trace: Trace
    kind: Kind
    weights: np.ndarray
    allowed: np.ndarray
    rows: np.ndarray
    is_uniform: bool = False

    def mean(self, values: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
        """The mean of (layer, head, query) over the judged rows, or those of them that `of` marks; NaN where none is."""
        return mean_over(values, self.rows if of is None else self.rows & of)

    def true_keys(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The query rows that have a true key, and those keys; None where the run or this kind has none."""
        found = [(t, key) for t, key in enumerate(true_keys(self.trace)) if key is not None] if self.kind == "cross" else []
        if not found:
            return None
        rows, keys = np.array(found).T
        return rows, keys


@dataclass(frozen=True)
class Measure:
    """One number of every head.

    Attributes:
        of: computes it, (layer, head) float64, NaN where a head has none; None where no head of this kind has it.
        column: its heading in a table; a word or two.
        title: what it is called beside the number.
        help: what it is, in a sentence.
        order: its place among the others, any number; of equal ones the name decides.
        is_share: whether it lies between 0 and 1, so that tiles can be tinted by it.
        missing: why a kind of attention may have none.
        of_uniform: what uniform attention always has, where that is one number; then no baseline is listed.
    """

    of: Callable[[Judged], np.ndarray | None]
    column: str
    title: str
    help: str
    order: int
    is_share: bool = False
    missing: str = "no row to judge"
    of_uniform: float | None = None
