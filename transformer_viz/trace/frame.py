"""A trace as a tidy data frame, one row per weight."""

import numpy as np
import pandas as pd

from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace

COLUMNS = ("kind", "layer", "head", "query", "query_token", "key", "key_token", "weight", "masked")


def to_frame(trace: Trace, kind: Kind | None = None, layer: int | None = None, head: int | None = None) -> pd.DataFrame:
    """All kinds below each other; layers, heads and positions count from 0.

    Args:
        trace: the run.
        kind: one kind alone; with it `layer` and `head` choose one of them.
        layer: by its number.
        head: by its number.
    """
    frames = [_of_kind(trace, each, layer, head) for each in trace.kinds if kind in (None, each)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(COLUMNS))


def _of_kind(trace: Trace, kind: Kind, layer: int | None, one_head: int | None) -> pd.DataFrame:
    attention = trace.attentions[kind]
    whole = attention.weights
    first = 0 if layer is None else attention.layer_index(layer)
    chosen = (slice(first, None if layer is None else first + 1), slice(one_head, None if one_head is None else one_head + 1))
    weights = whole[chosen]
    place, head, query, key = (axis.ravel() for axis in np.indices(weights.shape))
    place, head = place + first, head + (one_head or 0)
    queries, keys = np.array(attention.queries, dtype=object), np.array(attention.keys, dtype=object)
    return pd.DataFrame(
        {
            "kind": kind,
            "layer": np.array(attention.layers)[place],
            "head": head,
            "query": query,
            "query_token": queries[query],
            **_ids("query_id", attention.query_ids, query),
            "key": key,
            "key_token": keys[key],
            **_ids("key_id", attention.key_ids, key),
            # Not every table format knows half precision; nothing is lost.
            "weight": weights.ravel().astype(np.float32, copy=False),
            "masked": np.broadcast_to(attention.mask, whole.shape)[chosen].ravel(),
        }
    )


def _ids(name: str, ids: tuple[int, ...] | None, places: np.ndarray) -> dict[str, np.ndarray]:
    return {} if ids is None else {name: np.array(ids)[places]}
