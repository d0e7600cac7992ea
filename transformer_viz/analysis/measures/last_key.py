"""Weight on the last token of the source: where heads of an encoder rest, and cross-attention once all is written."""

import numpy as np

from transformer_viz.analysis.measure import HeadRows, Measure
from transformer_viz.analysis.token_roles import NONE


def of(heads: HeadRows) -> np.ndarray | None:
    """(…, layer, head), over the rows that have another key to look at; not of a decoder, whose last key is the row's own."""
    last = heads.positions.last
    if heads.kind == "decoder" or (last == NONE).all():
        return None
    keys = np.broadcast_to(last[..., None], (*last.shape, heads.weights.shape[-2]))
    return heads.mean(heads.weight_on(keys), heads.has_choice)


MEASURE = Measure(
    of,
    column="last key",
    title="weight on the last token",
    help="Mean weight on the last token of the source, <end> where there is one",
    order=6,
    is_share=True,
    missing="no row with a choice",
    is_for_many=True,
)
