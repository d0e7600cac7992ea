"""What the pictures of a survey have in common: words on the tiles of heads; layout, legend and axes of charts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformer_viz.figures.plain import Plain, PlainFigure, scatter
from transformer_viz.figures.theme import FONT, Theme, base_layout

SHARES = (0, 0.25, 0.5, 0.75, 1)
"""Ticks of an axis from 0 to 1."""
HOVER = "%{text}<extra></extra>"
_MOST_HEADS, _MOST_WITH_NAME, _MOST_LAYERS = 12, 4, 8
"""Heads a layer up to which a tile has room for a number, for a name above it, and layers up to which it is high enough."""
_SHIFT = 0.14
"""How far name and number stand above and below the middle of a tile."""


@dataclass(frozen=True)
class Tile:
    """What is written on the tile of a head, in a colour that is seen on it; row and column from 0."""

    row: int
    column: int
    number: str
    ink: str
    name: str = ""


def with_tiles(overview: PlainFigure, hovers: list[list[str]], tiles: Sequence[Tile], *, large: bool) -> PlainFigure:
    """An overview of heads with hovers of its own, and its numbers on the tiles where they have room.

    Args:
        overview: from `plain_overview`; the heads are its first trace.
        hovers: markup, (layer, head); the first line names the head.
        tiles: what is written on them.
        large: bigger letters, for a projector.
    """
    heads, *others = overview.data
    said = [re.sub("<.?b>", "", text.partition("<br>")[2]).replace("<br>", ", ") for row in hovers for text in row]
    layout = {**overview.layout, "meta": {**overview.layout["meta"], "said": said}}
    n_layers, n_heads = len(hovers), max(map(len, hovers), default=0)
    lines = list[Plain]()
    if n_heads <= _MOST_HEADS and n_layers <= _MOST_LAYERS:
        has_names = n_heads <= _MOST_WITH_NAME and any(tile.name for tile in tiles)
        texts = [([tile.number for tile in tiles], _SHIFT if has_names else 0)]
        texts += [([tile.name for tile in tiles], -_SHIFT)] if has_names else []
        lines = [_line(tiles, text, shift, 15 if large else 12) for text, shift in texts]
    return PlainFigure([{**heads, "text": hovers, "hovertemplate": HOVER}, *others, *lines], layout)


def _line(tiles: Sequence[Tile], text: list[str], shift: float, size: int) -> Plain:
    font = {"size": size, "color": [tile.ink for tile in tiles]}
    rows = [tile.row + shift for tile in tiles]
    return scatter(x=[tile.column for tile in tiles], y=rows, text=text, mode="text", textfont=font, hoverinfo="skip")


def chart_layout(colours: Theme, size: int, height: int, left: int) -> dict[str, Any]:
    """A legend above, and room for the axes: `left` pixels on their left."""
    return {
        **base_layout(colours, size),
        "height": height,
        "margin": {"l": left, "r": 14, "t": 8, "b": 48},
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1, "yref": "container", "yanchor": "top", "font": {"size": size}},
        "hoverlabel": {"align": "left", "font": {"family": FONT, "size": size}},
    }


def axis(colours: Theme, size: int, ends: tuple[float, float], ticks: Sequence[float], words: Sequence[str]) -> Plain:
    """An axis with these ticks and what they are called."""
    return {
        "range": list(ends),
        "tickmode": "array",
        "tickvals": list(ticks),
        "ticktext": list(words),
        "tickfont": {"size": size - 1, "color": colours.muted},
        "gridcolor": colours.grid,
        "zeroline": False,
        "fixedrange": True,
        "automargin": True,
        "ticks": "",
    }


def titled(axis: Plain, text: str, colours: Theme, size: int) -> Plain:
    """The same axis with a title, which is markup."""
    return {**axis, "title": {"text": text, "font": {"size": size, "color": colours.muted}, "standoff": 6}}
