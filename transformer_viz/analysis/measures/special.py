"""Weight on tokens of no text: beginning, end, separators."""

import numpy as np

from transformer_viz.analysis.measure import HeadRows, Measure


def of(heads: HeadRows) -> np.ndarray:
    """(…, layer, head), over the rows that have another key to look at."""
    on_special = np.einsum("...k,...k->...", heads.weights, heads.positions.special[..., None, None, None, :].astype(float))
    return heads.mean(on_special, heads.has_choice)


MEASURE = Measure(
    of,
    column="special",
    title="weight on special tokens",
    help="Mean weight on tokens of no text, such as <start> and <end>, over the rows that may look at another one too",
    order=7,
    is_share=True,
    missing="no row with a choice",
    is_for_many=True,
)
