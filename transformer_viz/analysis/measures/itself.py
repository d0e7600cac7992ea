"""Weight of each row of self-attention on its own position."""

import numpy as np

from transformer_viz.analysis.measure import HeadRows, Measure


def of(heads: HeadRows) -> np.ndarray | None:
    """(…, layer, head), over the rows that have another key to look at; not of cross-attention."""
    if heads.kind == "cross":
        return None
    return heads.mean(heads.weight_on(np.arange(heads.weights.shape[-2])), heads.has_choice)


MEASURE = Measure(
    of,
    column="itself",
    title="weight on itself",
    help="Mean weight of a token on itself, over the rows that may look at another one too; in self-attention",
    order=8,
    is_share=True,
    missing="no row with a choice",
    is_for_many=True,
)
