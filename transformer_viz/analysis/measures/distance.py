"""|key − true key| in positions, weighted, over the steps that have one; in self-attention |key − the row's own position|."""

import numpy as np

from transformer_viz.analysis.measure import HeadRows, Measure, by_head
from transformer_viz.analysis.token_roles import NONE


def of(heads: HeadRows) -> np.ndarray | None:
    """(…, layer, head)."""
    n_queries, n_keys = heads.weights.shape[-2:]
    own = np.arange(n_queries)
    if heads.kind != "cross":
        return heads.mean(_steps(heads, own, n_keys))
    if (true := heads.true_keys) is None:
        return None
    return heads.mean(_steps(heads, true, n_keys), by_head(true != NONE))


def _steps(heads: HeadRows, reference: np.ndarray, n_keys: int) -> np.ndarray:
    """The weighted distance of each row's keys from a position, int (…, query)."""
    steps = np.abs(np.arange(n_keys) - reference[..., None])
    return np.einsum("...k,...k->...", heads.weights, steps[..., None, None, :, :].astype(np.float64))


MEASURE = Measure(
    of,
    column="distance",
    title="mean distance",
    help="Mean distance from the right token; in self-attention, from the row's own position. In positions",
    order=4,
)
