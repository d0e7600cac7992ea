"""The colour scales of maps of weights: up to 1, up to a head's own largest weight, or logarithmic."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from transformer_viz.figures.theme import Theme, even_scale, rgb
from transformer_viz.language import later

Scale = Literal["fixed", "head", "log"]
SCALES: dict[Scale, str] = {"fixed": "0 to 1", "head": "this head's maximum", "log": "logarithmic"}
TITLES: dict[Scale, str] = {"fixed": "", "head": later("each head to its own maximum"), "log": later("logarithmic colours")}
"""The words that each scale adds to a figure's title, behind a comma."""
_DECADES = 4
"""The logarithmic scale begins at 0.0001; what is less has its first colour."""
_STOPS = 33


@dataclass(frozen=True)
class Quantity:
    """The quantity that a map shows.

    Attributes:
        word: for one of them.
        full: has the strongest colour, unless each head is drawn to its own maximum.
        title: what a picture of them is called, behind the kind of attention; nothing for weights.
    """

    word: str = later("weight")
    full: float = 1.0
    title: str = ""


WEIGHTS = Quantity()


def scaled(weights: np.ndarray, masked: np.ndarray, scale: Scale) -> np.ndarray:
    """(…, query, key) weights as shares of the strongest colour's: of each head's largest, or as they are."""
    if scale != "head":
        return weights
    seen = np.where(masked | np.isnan(weights), np.float32(0), weights)
    most = seen.max((-2, -1), keepdims=True, initial=0)
    return weights / np.where(most > 0, most, np.float32(1))


def share(weights: np.ndarray, scale: Scale) -> np.ndarray:
    """The place of a weight (0 to 1) on a colour scale, 0 to 1."""
    if scale != "log":
        return weights
    return 1 + np.log10(np.clip(weights, 10.0**-_DECADES, 1)) / _DECADES


def stops(colours: Theme, scale: Scale) -> list[list[Any]]:
    """The colour scale of weights from 0 to the strongest colour's."""
    if scale != "log":
        return even_scale(colours.scale)
    places, at = np.linspace(0, 1, _STOPS), np.linspace(0, 1, len(colours.scale))
    channels = [
        np.interp(places, at, channel).round().astype(int).tolist() for channel in np.transpose([*map(rgb, colours.scale)])
    ]
    shades = [f"rgb({red}, {green}, {blue})" for red, green, blue in zip(*channels, strict=True)]
    stops = [[10.0 ** (_DECADES * (i / (_STOPS - 1) - 1)), shade] for i, shade in enumerate(shades)]
    return [[0.0, shades[0]], *stops]
