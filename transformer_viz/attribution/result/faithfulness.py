"""Faithfulness curves: how much probability what was written loses without the keys that a ranking puts first.

Comprehensiveness is p(y_t) − p(y_t without the first k), sufficiency p(y_t) − p(y_t with the first k alone) (DeYoung et al.
2020, section 4): a ranking is faithful where the former is large and the latter small.
"""

from dataclasses import dataclass

import numpy as np

from transformer_viz.analysis.intervals import Mean
from transformer_viz.text_table import number_cell, text_table

KS = (1, 2, 3, 5)
"""How many keys."""


@dataclass(frozen=True)
class MeanCurve:
    """One ranking over all runs; a mean for each of `KS`."""

    name: str
    comprehensiveness: tuple[Mean, ...]
    sufficiency: tuple[Mean, ...]

    def __str__(self) -> str:
        """Both curves, a line each."""
        curves = ("comprehensiveness", "sufficiency")
        rows = [(name, *(number_cell(mean.value) for mean in getattr(self, name))) for name in curves]
        return text_table((self.name, *(f"k = {k}" for k in KS)), rows)


def first_keys(row: np.ndarray, among: np.ndarray, k: int) -> np.ndarray:
    """bool (key,): the k largest of these keys, or all where there are fewer; of equal ones the first."""
    there = among.nonzero()[0]
    is_first = np.zeros(len(row), dtype=bool)
    # What is no number comes last.
    is_first[there[np.argsort(-row[there], kind="stable")[:k]]] = True
    return is_first
