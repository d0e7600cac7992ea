"""|key − true key| in positions, weighted, over the steps that have one; in self-attention |key − the row's own position|."""

import numpy as np

from transformer_viz.analysis.measure import Judged, Measure, by_head
from transformer_viz.analysis.token_roles import NONE


def of(judged: Judged) -> np.ndarray | None:
    """(…, layer, head)."""
    n_queries, n_keys = judged.weights.shape[-2:]
    own = np.arange(n_queries)
    if judged.kind != "cross":
        return judged.mean(_steps(judged, own, n_keys))
    if (true := judged.true_keys) is None:
        return None
    return judged.mean(_steps(judged, true, n_keys), by_head(true != NONE))


def _steps(judged: Judged, reference: np.ndarray, n_keys: int) -> np.ndarray:
    """Of each row, from a position (…, query)."""
    steps = np.abs(np.arange(n_keys) - reference[..., None])
    return np.einsum("...k,...k->...", judged.weights, steps[..., None, None, :, :].astype(np.float64))


MEASURE = Measure(
    of,
    column="distance",
    title="mean distance",
    help="Mean distance from the right key; in self-attention, from the row's own position. In positions",
    order=4,
)
