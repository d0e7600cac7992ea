"""Weight on the first key: in a decoder where heads rest that have nothing to look for.

Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks".
"""

import numpy as np

from transformer_viz.analysis.measure import HeadRows, Measure


def of(heads: HeadRows) -> np.ndarray:
    """(…, layer, head), over the rows that have another key to look at."""
    return heads.mean(heads.weights[..., 0], heads.has_choice)


MEASURE = Measure(
    of,
    column="first key",
    title="weight on the first token",
    help="Mean weight on the first key, over the rows that may look at another one too",
    order=5,
    is_share=True,
    missing="no row with a choice",
)
