"""Entropy as a share of the logarithm of the number of allowed keys; rows with one allowed key have none."""

import numpy as np

from transformer_viz.analysis.measure import Judged, Measure
from transformer_viz.analysis.rows import entropies


def of(judged: Judged) -> np.ndarray:
    """(layer, head)."""
    n_allowed = judged.allowed.sum(-1)
    return judged.mean(entropies(judged.weights) / np.log(np.maximum(n_allowed, 2)), n_allowed > 1)


MEASURE = Measure(
    of,
    column="entropy share",
    title="entropy, of the largest possible",
    help="Entropy as a share of the logarithm of the number of allowed keys",
    order=3,
    is_share=True,
    missing="no row with a choice",
    of_uniform=1.0,
)
