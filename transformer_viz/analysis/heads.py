"""One head's map, or all heads of a layer as one: the mean, or the strongest."""

from typing import Literal

import numpy as np

from transformer_viz.errors import OptionError
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.trace import Trace

COMBINED: tuple[Literal["mean", "max"], ...] = ("mean", "max")


def head_map(trace: Trace, kind: Kind, layer: int, head: Head) -> np.ndarray:
    """Weights of one head, (query, key) float32; `mean` and `max` are taken over the heads of the layer.

    Raises:
        OptionError: the run has no such kind, layer or head; the message names the possible ones.
    """
    return combined(_heads(trace, kind, layer), head)


def head_row(trace: Trace, kind: Kind, layer: int, head: Head, query: int) -> np.ndarray:
    """One row of `head_map`, (key,), without computing the others."""
    return combined(_heads(trace, kind, layer)[:, query], head)


def _heads(trace: Trace, kind: Kind, layer: int) -> np.ndarray:
    """(head, query, key) of a layer."""
    weights = trace.attentions(kind)
    if weights is None:
        raise OptionError(f"this run has no {kind} attention; it has {', '.join(trace.kinds)}")
    return weights[trace.layer_place(kind, layer)]


def combined(heads: np.ndarray, head: Head) -> np.ndarray:
    """(head, …) -> (…): one of them, or all as one."""
    if head == "mean":
        return heads.mean(0, dtype=np.float32)
    if head == "max":
        return heads.max(0).astype(np.float32, copy=False)
    return heads[check_place("head", head, len(heads))].astype(np.float32, copy=False)


def reasons_map(trace: Trace, kind: Kind, layer: int, head: Head) -> np.ndarray:
    """Mask reasons that belong to `head_map`, (query, key) uint8.

    Where an edit made heads differ, a combined map is masked only where every head of the layer is.
    """
    reasons = trace.mask_reasons[kind]
    if reasons.ndim == 2:
        return reasons
    heads = reasons[trace.layer_place(kind, layer)]
    if isinstance(head, int):
        return heads[head]
    return np.where((heads > 0).all(0), heads.max(0), 0).astype(np.uint8)


def layer_or_first(trace: Trace, kind: Kind, layer: int | None) -> int:
    """The layer that was asked for; where none was, the lowest that the run has of a kind: 0, unless layers were chosen."""
    return next(iter(trace.layer_numbers(kind)), 0) if layer is None else layer


def scores_map(trace: Trace, kind: Kind, layer: int, head: int) -> np.ndarray:
    """Scores of one head before the mask, (query, key).

    Raises:
        OptionError: the run has no scores of this kind, or no such head.
    """
    scores = trace.scores.get(kind)
    if scores is None:
        raise OptionError(f'this run has no {kind} scores; decode with record=("weights", "scores")')
    return scores[trace.layer_place(kind, layer), check_place("head", head, scores.shape[1])]


def n_layers_heads(trace: Trace, kind: Kind) -> tuple[int, int]:
    """How many layers and heads the run has of a kind; which layers, says `trace.layer_numbers`."""
    weights = trace.attentions(kind)
    assert weights is not None
    return weights.shape[0], weights.shape[1]


def check_place(name: str, value: object, size: int) -> int:
    """A layer or head number from 0 to `size` - 1, or an OptionError."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < size:
        words = " (or 'mean' or 'max')" if name == "head" else ""
        raise OptionError(f"{name}={value!r} is not possible; it is a whole number from 0 to {size - 1}{words}")
    return value
