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


def _of_kind(trace: Trace, kind: Kind) -> pd.DataFrame:
    weights = trace.attentions(kind)
    assert weights is not None
    place, head, query, key = (axis.ravel() for axis in np.indices(weights.shape))
    queries, keys = np.array(trace.queries(kind), dtype=object), np.array(trace.keys(kind), dtype=object)
    return pd.DataFrame(
        {
            "kind": kind,
            "layer": np.array(trace.layer_numbers(kind))[place],
            "head": head,
            "query": query,
            "query_token": queries[query],
            "key": key,
            "key_token": keys[key],
            # Not every table format knows half precision; nothing is lost.
            "weight": weights.ravel().astype(np.float32, copy=False),
            "masked": np.broadcast_to(trace.masks[kind], weights.shape).ravel(),
        }
    )
