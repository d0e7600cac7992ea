"""One head's map, or all heads of a layer as one: the mean, or the strongest."""

from typing import Literal

import numpy as np

from transformer_viz.errors import OptionError
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace

Head = int | Literal["mean", "max"]

COMBINED: tuple[Literal["mean", "max"], ...] = ("mean", "max")


def head_map(trace: Trace, kind: Kind, layer: int, head: Head) -> np.ndarray:
    """Weights of one head, (query, key) float32; `mean` and `max` are taken over the heads of the layer.

    Raises:
        OptionError: the run has no such kind, layer or head; the message names the possible ones.
    """
    weights = trace.attentions(kind)
    if weights is None:
        raise OptionError(f"this run has no {kind} attention; it has {', '.join(trace.kinds)}")
    n_layers, n_heads = weights.shape[:2]
    check_place("layer", layer, n_layers)
    if head == "mean":
        return weights[layer].mean(0)
    if head == "max":
        return weights[layer].max(0)
    return weights[layer, check_place("head", head, n_heads)]


def reasons_map(trace: Trace, kind: Kind, layer: int, head: Head) -> np.ndarray:
    """Mask reasons that belong to `head_map`, (query, key) uint8.

    Where an edit made heads differ, a combined map is masked only where every head of the layer is.
    """
    reasons = trace.mask_reasons[kind]
    if reasons.ndim == 2:
        return reasons
    if isinstance(head, int):
        return reasons[layer, head]
    return np.where((reasons[layer] > 0).all(0), reasons[layer].max(0), 0).astype(np.uint8)


def scores_map(trace: Trace, kind: Kind, layer: int, head: int) -> np.ndarray:
    """Scores of one head before the mask, (query, key).

    Raises:
        OptionError: the run has no scores of this kind, or no such head.
    """
    scores = trace.scores.get(kind)
    if scores is None:
        raise OptionError(f'this run has no {kind} scores; decode with record=("weights", "scores")')
    return scores[check_place("layer", layer, len(scores)), check_place("head", head, scores.shape[1])]


def n_layers_heads(trace: Trace, kind: Kind) -> tuple[int, int]:
    """How many layers and heads a kind has."""
    weights = trace.attentions(kind)
    assert weights is not None
    return weights.shape[0], weights.shape[1]


def title(layer: int, head: Head) -> str:
    """What to call a head in a picture or sentence; counts from 1."""
    if head == "mean":
        return f"layer {layer + 1}, mean of the heads"
    if head == "max":
        return f"layer {layer + 1}, strongest head"
    return f"layer {layer + 1} head {head + 1}"


def check_place(name: str, value: object, size: int) -> int:
    """A layer or head number from 0 to `size` - 1, or an OptionError."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < size:
        words = " (or 'mean' or 'max')" if name == "head" else ""
        raise OptionError(f"{name}={value!r} is not possible; it is a whole number from 0 to {size - 1}{words}")
    return value
