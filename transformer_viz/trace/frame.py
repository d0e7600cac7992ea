"""A trace as a tidy data frame, one row per weight."""

import numpy as np
import pandas as pd

from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace

COLUMNS = ("kind", "layer", "head", "query", "query_token", "key", "key_token", "weight", "masked")


def to_frame(trace: Trace) -> pd.DataFrame:
    """All kinds below each other; layers, heads and positions count from 0."""
    frames = [_of_kind(trace, kind) for kind in trace.kinds]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(COLUMNS))


def focus_frame(trace: Trace, kind: Kind, layer: int, head: int | None = None) -> pd.DataFrame:
    """The rows of `to_frame` that belong to one head, or to all heads of a layer, without making the others."""
    return _of_kind(trace, kind, slice(layer, layer + 1), slice(None) if head is None else slice(head, head + 1))


def _of_kind(trace: Trace, kind: Kind, layers: slice = slice(None), heads: slice = slice(None)) -> pd.DataFrame:
    whole = trace.attentions(kind)
    assert whole is not None
    weights, masked = whole[layers, heads], np.broadcast_to(trace.masks[kind], whole.shape)[layers, heads]
    layer, head, query, key = (axis.ravel() for axis in np.indices(weights.shape))
    queries, keys = np.array(trace.queries(kind), dtype=object), np.array(trace.keys(kind), dtype=object)
    return pd.DataFrame(
        {
            "kind": kind,
            "layer": layer + (layers.start or 0),
            "head": head + (heads.start or 0),
            "query": query,
            "query_token": queries[query],
            "key": key,
            "key_token": keys[key],
            "weight": weights.ravel(),
            "masked": masked.ravel(),
        }
    )
