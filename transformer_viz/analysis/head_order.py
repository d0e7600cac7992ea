"""Sorts all heads of a kind by a measure, for models with too many heads to look at each."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from transformer_viz.analysis.head_names import roles
from transformer_viz.analysis.head_rows import HeadRows
from transformer_viz.analysis.measures import MEASURES
from transformer_viz.analysis.query_rows import cross_steps
from transformer_viz.errors import OptionError, join_names
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.trace import Trace

_AT_ONCE = min(4, os.cpu_count() or 1)
LAYERS, ROLE = "layers", "role"
"""The order of the model, and heads of one name (`head_names`) side by side."""


def offered(trace: Trace, kind: Kind) -> tuple[str, ...]:
    """The measures that heads of this kind have."""
    heads = _of_layer(trace, kind, 0)
    first = replace(heads, weights=heads.weights[:, :1], allowed=heads.allowed[:, :1], rows=heads.rows[:, :1])
    return tuple(name for name, measure in MEASURES.items() if measure.of(first) is not None)


def statistic(trace: Trace, kind: Kind, name: str) -> np.ndarray:
    """A measure of every head, (layer, head) float64; NaN where a head has none. A few layers at a time, since all of a deep
    model's weights in float64 would be several times the run.

    Raises:
        OptionError: heads of this kind have no such measure.
    """
    if name not in (known := offered(trace, kind)):
        raise OptionError(f"measure {name!r} is not possible for {kind} attention here; choose one of {join_names(known)}")
    layers = range(trace.attentions[kind].n_layers)
    # numpy lets other threads compute meanwhile.
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        rows = pool.map(lambda place: MEASURES[name].of(_of_layer(trace, kind, place)), layers)
        return np.concatenate([row for row in rows if row is not None])


def ordered(trace: Trace, kind: Kind, by: str = LAYERS) -> list[tuple[int, int]]:
    """Layer and head of every head, lowest number first; equal ones, and those without a number at the end, as in the model.

    Args:
        trace: the run.
        kind: `encoder`, `decoder` or `cross`.
        by: `layers`, `role`, or a measure of `offered`.
    """
    attention = trace.attentions[kind]
    places = list(np.ndindex(attention.n_layers, attention.n_heads))
    if by == ROLE:
        heads = HeadRows.of(trace, kind)
        named = roles(heads, heads.uniform())
        scores = np.nan_to_num(named.score)
        places.sort(key=lambda at: (named.number[at], -scores[at]))
    elif by != LAYERS:
        values = statistic(trace, kind, by)
        places.sort(key=lambda at: (np.isnan(values[at]), values[at]))
    return [(attention.layers[place], head) for place, head in places]


def farthest_head(attention: Attention, layer: int, head: Head) -> tuple[int, int]:
    """Layer and head whose weights differ most from those of a head, by the mean distance of their cells."""
    here = attention.head(layer, head)
    distances = [[np.abs(there - here).mean() for there in of_layer] for of_layer in attention.weights]
    place, other = np.unravel_index(int(np.nan_to_num(distances).argmax()), (attention.n_layers, attention.n_heads))
    return attention.layers[int(place)], int(other)


def graded_head(trace: Trace) -> tuple[int, int] | None:
    """Layer and head of cross-attention whose map shows best what weights are. Among the heads that have the largest weight on
    the true key at most steps, this is the one with the widest rows: a head that is sure of everything shows only 0 and 1.

    None where the run has no cross-attention or no step has a true key.
    """
    n_right = right_looks(trace)
    if n_right is None:
        return None
    spread = np.nan_to_num(statistic(trace, "cross", "entropy_share"))
    place, head = max(np.ndindex(n_right.shape), key=lambda at: (n_right[at], spread[at]))
    return trace.cross.layers[place], head


def right_looks(trace: Trace) -> np.ndarray | None:
    """At how many steps each head of cross-attention has its largest weight on the true key, (layer, head).

    None where the run has no cross-attention or no step has a true key.
    """
    steps = cross_steps(trace)
    if steps is None:
        return None
    rows, keys = steps
    return (trace.cross.weights[:, :, rows].argmax(-1) == keys).sum(-1)


def _of_layer(trace: Trace, kind: Kind, place: int) -> HeadRows:
    return HeadRows.of(trace, kind, slice(place, place + 1))
