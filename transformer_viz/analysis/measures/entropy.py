"""Entropy of a row's weights, in nats."""

import numpy as np

from transformer_viz.analysis.measure import Judged, Measure


def of(judged: Judged) -> np.ndarray:
    """(…, layer, head)."""
    return judged.mean(judged.entropy)


MEASURE = Measure(of, column="entropy", title="entropy (nats)", help="Mean entropy of a row, in nats", order=2)
