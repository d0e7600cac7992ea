"""Which rows of an attention can be judged, and averages over them.

Left out are: padded queries, rows that may look at no key, rows that hold a number that is none (only a
run with a named mistake has such), and rows without any weight (of a head that was switched off).
"""

import numpy as np

from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import END, PAD


def real_queries(trace: Trace, kind: Kind) -> np.ndarray:
    """bool (query,); False at padding.

    In the decoder `<pad>` is padding only after an `<end>`: elsewhere it was read as a token, which an
    untrained model may write, and with which some models begin.
    """
    tokens = trace.queries(kind)
    if kind == "encoder":
        return np.array([token != PAD for token in tokens], dtype=bool)
    ended = np.cumsum([False, *(token == END for token in trace.output_tokens[:-1])]) > 0
    return ~(ended[: len(tokens)] & np.array([token == PAD for token in tokens], dtype=bool))


def allowed_keys(trace: Trace, kind: Kind) -> np.ndarray:
    """bool (layer, head, query, key), True = allowed; a view, not to be written to."""
    weights = trace.attentions(kind)
    assert weights is not None
    return np.broadcast_to(~trace.masks[kind], weights.shape)


def judged_rows(trace: Trace, kind: Kind) -> np.ndarray:
    """bool (layer, head, query): the rows that are not left out."""
    weights = trace.attentions(kind)
    assert weights is not None
    has_numbers = np.isfinite(weights).all(-1)
    return real_queries(trace, kind) & allowed_keys(trace, kind).any(-1) & has_numbers & (weights != 0).any(-1)


def even_weights(allowed: np.ndarray) -> np.ndarray:
    """The attention that looks at every allowed key alike, float64; rows without one are zeros."""
    return allowed / np.maximum(allowed.sum(-1, keepdims=True), 1)


def mean_over(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The mean of (…, query) over the rows marked True; NaN where none is."""
    counts = rows.sum(-1)
    sums = np.where(rows, values, 0.0).sum(-1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def entropies(weights: np.ndarray) -> np.ndarray:
    """Entropy of each row in nats, (…, query) float64; 0 · log 0 is 0."""
    exact = weights.astype(np.float64)
    positive = exact > 0
    return -np.where(positive, exact * np.log(np.where(positive, exact, 1.0)), 0.0).sum(-1)
