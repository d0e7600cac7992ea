"""|key − true key| in positions, weighted, over the steps that have one; in self-attention |key − the row's own position|."""

import numpy as np

from transformer_viz.analysis.measure import Judged, Measure


def of(judged: Judged) -> np.ndarray | None:
    """(layer, head)."""
    n_queries, n_keys = judged.weights.shape[2:]
    reference, has_one = np.arange(n_queries), np.ones(n_queries, dtype=bool)
    if judged.kind == "cross":
        if (true := judged.true_keys()) is None:
            return None
        reference, has_one = np.zeros(n_queries, dtype=int), np.isin(np.arange(n_queries), true[0])
        reference[true[0]] = true[1]
    steps = np.abs(np.arange(n_keys) - reference[:, None])
    return judged.mean((judged.weights * steps).sum(-1), has_one)


MEASURE = Measure(
    of,
    column="distance",
    title="mean distance",
    help="Mean distance from the right key; in self-attention, from the row's own position. In positions",
    order=4,
)
