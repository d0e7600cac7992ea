"""Entropy of a row's weights, in nats."""

import numpy as np

from transformer_viz.analysis.measure import HeadRows, Measure


def of(heads: HeadRows) -> np.ndarray:
    """(…, layer, head)."""
    return heads.mean(heads.entropy)


MEASURE = Measure(of, column="entropy", title="entropy (nats)", help="Mean entropy of a row, in nats", order=2)
