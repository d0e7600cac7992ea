"""Recomputes weights from recorded scores with the ways of masking and the precisions that published code uses.

This package itself fills masked scores with `-inf` and sets masked weights to 0 after the softmax (see `model.attention`).
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from transformer_viz.addresses import HeadAddress, find_head
from transformer_viz.errors import OptionError, join_names
from transformer_viz.numbers_in_words import number_words
from transformer_viz.trace.trace import Trace

Fill = Literal["-inf", "-1e9", "re-zeroed"]
Precision = Literal["float32", "float16"]
FILLS: tuple[Fill, ...] = get_args(Fill)
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
FILL_WORDS: dict[Fill, str] = {
    "-inf": "masked scores become −∞",
    "-1e9": "masked scores become −10⁹",
    "re-zeroed": "masked scores become −10⁹, and masked weights 0 after the softmax",
}


@dataclass(frozen=True)
class Softmax:
    """One softmax, before and after; both arrays are float32 for drawing, computed in the precision asked for."""

    filled: np.ndarray
    weights: np.ndarray


def softmax(scores: np.ndarray, masked: np.ndarray, fill: Fill = "-inf", precision: Precision = "float32") -> Softmax:
    """Masks and normalizes the last axis.

    Args:
        scores: (…, key), before the mask.
        masked: bool, broadcastable to the scores, True = masked.
        fill: what a masked score becomes.
        precision: in which everything is computed. In float16 the largest number is 65504, so −10⁹ is −∞.

    Raises:
        OptionError: an unknown fill or precision.
    """
    if fill not in FILLS:
        raise OptionError(f"fill {fill!r} is not known; choose one of {join_names(FILLS)}")
    if precision not in PRECISIONS:
        raise OptionError(f"precision {precision!r} is not known; choose one of {join_names(PRECISIONS)}")
    dtype = np.dtype(precision)
    with np.errstate(over="ignore", invalid="ignore"):
        value = dtype.type(-np.inf if fill == "-inf" else -1e9)
        filled = np.where(masked, value, scores.astype(dtype))
        # As torch does it: the largest is taken away first, so that nothing overflows.
        powers = np.exp(filled - filled.max(-1, keepdims=True))
        weights = powers / powers.sum(-1, keepdims=True, dtype=dtype)
    if fill == "re-zeroed":
        weights = np.where(masked, dtype.type(0), weights)
    return Softmax(filled.astype(np.float32), weights.astype(np.float32))


def head_softmax(trace: Trace, head: str | HeadAddress, fill: Fill = "-inf", precision: Precision = "float32") -> Softmax:
    """One head's softmax over its recorded scores, masked as in the run.

    Args:
        trace: a run with scores (`record=("weights", "scores")`).
        head: the head, such as `cross.2.3`.
        fill: as in `softmax`.
        precision: as in `softmax`.

    Raises:
        OptionError: the run has no scores of this kind, or no such head; an unknown fill or precision.
    """
    place = find_head(head, trace.grid)
    attention = trace.attentions[place.kind]
    scores, masked = (of(place.layer, place.head) for of in (attention.head_scores, attention.head_mask))
    return softmax(scores, masked, fill, precision)


def empty_row(scores: np.ndarray, fill: Fill, precision: Precision) -> str:
    """The weights of a fully masked row of scores (key,), in words."""
    weights = softmax(scores, np.ones(len(scores), dtype=bool), fill, precision).weights
    if np.isnan(weights).any():
        return "NaN"
    if not weights.any():
        return "all 0: looks at nothing"
    if np.allclose(weights, 1 / len(weights), rtol=1e-2):
        return f"{number_words(weights[0], 4)} = 1/{len(weights)} each: looks at everything alike"
    return f"between {number_words(weights.min(), 4)} and {number_words(weights.max(), 4)}"
