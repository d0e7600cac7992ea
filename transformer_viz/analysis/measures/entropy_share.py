"""Entropy as a share of the logarithm of the number of allowed keys; rows with one allowed key have none."""

import numpy as np

from transformer_viz.analysis.measure import HeadRows, Measure


def of(heads: HeadRows) -> np.ndarray:
    """(…, layer, head)."""
    return heads.mean(heads.entropy_share, heads.has_choice)


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
