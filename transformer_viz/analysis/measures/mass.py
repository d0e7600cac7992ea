"""Weight on the true key, over the steps that have one."""

import numpy as np

from transformer_viz.analysis.measure import HeadRows, Measure, by_head
from transformer_viz.analysis.token_roles import NONE


def of(heads: HeadRows) -> np.ndarray | None:
    """(…, layer, head); cross-attention only."""
    if (true := heads.true_keys) is None:
        return None
    return heads.mean(heads.weight_on(true), by_head(true != NONE))


MEASURE = Measure(
    of,
    column="right token",
    title="weight on the right token",
    help="Mean weight on the right token, over the steps that have one",
    order=0,
    is_share=True,
    missing="no right token",
)
