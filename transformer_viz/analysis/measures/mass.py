"""Weight on the true key, over the steps that have one."""

import numpy as np

from transformer_viz.analysis.measure import Judged, Measure


def of(judged: Judged) -> np.ndarray | None:
    """(layer, head); cross-attention only."""
    if (true := judged.true_keys()) is None:
        return None
    queries, keys = true
    on_true = np.zeros(judged.rows.shape)
    on_true[:, :, queries] = judged.weights[:, :, queries, keys]
    has_one = np.isin(np.arange(judged.rows.shape[-1]), queries)
    return judged.mean(on_true, has_one)


MEASURE = Measure(
    of,
    column="right key",
    title="weight on the right key",
    help="Mean weight on the right key, over the steps that have one",
    order=0,
    is_share=True,
    missing="no right key",
)
