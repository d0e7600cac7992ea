"""Share of the steps with a true key whose largest weight is on it; of equal weights the lowest key is the largest."""

import numpy as np

from transformer_viz.analysis.measure import HeadRows, Measure, by_head
from transformer_viz.analysis.measures import mass
from transformer_viz.analysis.token_roles import NONE


def of(heads: HeadRows) -> np.ndarray | None:
    """(…, layer, head); cross-attention only."""
    if (true := heads.true_keys) is None:
        return None
    if heads.is_uniform:
        # It has no largest weight. Its baseline is the chance of drawing the true key from the allowed ones.
        return mass.of(heads)
    return heads.mean((heads.top == by_head(true)).astype(np.float64), by_head(true != NONE))


MEASURE = Measure(
    of,
    column="on top",
    title="steps with the right token on top",
    help="Share of those steps whose largest weight is on the right token",
    order=1,
    is_share=True,
    missing="no right token",
)
