"""A grid of tiles, one for each head of a kind: layers are rows, heads are columns, the colour is one number."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transformer_viz.figures.figure_data import Plain, PlainFigure, heatmap, scatter
from transformer_viz.figures.parts import colour_axis, named_axis
from transformer_viz.figures.theme import Style, base_layout
from transformer_viz.language import say
from transformer_viz.terms import Head, Kind

_ROW, _LEAST, _AROUND = 13, 200, 70
"""Pixels of a layer, of all of them at least, and of what stands around them."""
_MOST_NAMED = 12
"""The most heads and layers that have their numbers beside the picture."""
_MOST_HEADS, _MOST_WITH_NAME, _MOST_LAYERS = 12, 4, 8
"""The most heads a layer with which a tile has room for a number, and for a name, and the most layers for both."""
_SHIFT = 0.14
"""The distance of name and number from the middle of a tile, above and below."""


@dataclass(frozen=True)
class Tile:
    """The number and name on a head's tile, in a colour that is readable on it; row and column count from 0."""

    row: int
    column: int
    number: str
    ink: str
    name: str = ""


def tile_map(
    kind: Kind,
    layers: tuple[int, ...],
    values: np.ndarray,
    title: str,
    focus: tuple[int, Head] | None,
    style: Style,
    *,
    limit: float | None = None,
    hovers: list[list[str]] | None = None,
    tiles: Sequence[Tile] = (),
    others: Sequence[Plain] = (),
) -> PlainFigure:
    """Draws all heads of a kind, in colours from the lowest to the highest number of all heads, which the bar says.

    Args:
        kind: of attention.
        layers: their numbers, from 0.
        values: (layer, head); NaN where a head has no number.
        title: what the numbers are; markup.
        focus: layer and head to outline; `mean` and `max` outline the whole layer.
        style: theme and size.
        limit: of a difference, what has its strongest colours.
        hovers: (layer, head) markup, whose first line names the head; by default it is made of the number.
        tiles: what is written on them where they have room.
        others: traces between the tiles and the outline.
    """
    colours, size, (n_layers, n_heads) = style.colours, style.size - 1, values.shape
    ends = ends_of(values) if limit is None else (-limit, limit)
    names = [] if limit is None else [f"−{limit:.2g}", "0", f"+{limit:.2g}"]
    descriptions = [say("no number") if np.isnan(value) else f"{value:.3f}" for value in values.ravel()]
    if hovers is not None:
        descriptions = [re.sub("<.?b>", "", text.partition("<br>")[2]).replace("<br>", ", ") for row in hovers for text in row]
    drawn = [
        head_cells(values, hovers, say("layer %{{y}} head %{{x}}<br>{title} <b>%{{z:.3f}}</b>", title=title), gap=1),
        *others,
    ]
    if focus is not None and focus[0] in layers:
        row, head = layers.index(focus[0]), focus[1]
        left, right = (head, head) if isinstance(head, int) else (0, n_heads - 1)
        x = [left - 0.5, right + 0.5, right + 0.5, left - 0.5, left - 0.5]
        y = [row - 0.5, row - 0.5, row + 0.5, row + 0.5, row - 0.5]
        line = {"color": colours.accent, "width": 2.5}
        drawn.append(scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", cliponaxis=False))
    if tiles and n_heads <= _MOST_HEADS and n_layers <= _MOST_LAYERS:
        has_names = n_heads <= _MOST_WITH_NAME and any(tile.name for tile in tiles)
        drawn.append(words_on(tiles, [tile.number for tile in tiles], size, _SHIFT if has_names else 0))
        drawn += [words_on(tiles, [tile.name for tile in tiles], size, -_SHIFT)] if has_names else []
    # For clicks and for the keyboard it is a mosaic whose tiles are single cells; with what is said of each.
    meta = {"kind": kind, "layers": n_layers, "heads": n_heads, "said": descriptions, "pitch_x": 1, "pitch_y": 1}
    looks: dict[str, Any] = {"tickfont": {"size": size - 1, "color": colours.ink}, "tickangle": 0, "fixedrange": True}
    rows, columns = ([str(number + 1) for number in numbers] for numbers in (layers, range(n_heads)))
    return PlainFigure(
        drawn,
        {
            **base_layout(colours, size),
            "height": _AROUND + max(_LEAST, n_layers * _ROW),
            "margin": {"l": 40, "r": 58, "t": 26, "b": 30},
            "title": {"text": title, "font": {"size": size + 2, "color": colours.ink}, "x": 0.5, "y": 0.985, "yanchor": "top"},
            "coloraxis": colour_axis(colours, size, ends, names, signed=limit is not None),
            "xaxis": named_axis(colours, size, columns, say("head"), every=-(-n_heads // _MOST_NAMED), **looks),
            "yaxis": named_axis(colours, size, rows, say("layer"), every=-(-n_layers // _MOST_NAMED), down=True, **looks),
            "meta": {**meta, "tiles": [[layer, head] for layer in layers for head in range(n_heads)]},
        },
    )


def ends_of(values: np.ndarray) -> tuple[float, float]:
    """The ends of the colour scale: the lowest and the highest number, or where all are equal 0 to 1 around it."""
    known = values[np.isfinite(values)]
    if known.size and np.ptp(known) > 0:
        return float(known.min()), float(known.max())
    return float(known.min(initial=0)), float(known.max(initial=1))


def head_cells(values: np.ndarray, hovers: list[list[str]] | None, hover: str, *, gap: int, **more: Any) -> Plain:
    """(layer, head) numbers as coloured tiles, each with its own hover, or with what a template of Plotly's says."""
    words: dict[str, Any] = {"hovertemplate": f"{hover}<extra></extra>"}
    if hovers is not None:
        words = {"text": hovers, "hovertemplate": "%{text}<extra></extra>"}
    looks: dict[str, Any] = {"coloraxis": "coloraxis"} if "colorscale" not in more else {"showscale": False}
    return heatmap(z=values.astype(np.float32), xgap=gap, ygap=gap, hoverongaps=False, **words, **looks, **more)


def words_on(tiles: Sequence[Tile], text: list[str], size: int, shift: float = 0) -> Plain:
    """A text for each tile. Not the heatmap's own: its grey on the middle colours is hard to read."""
    font = {"size": size, "color": [tile.ink for tile in tiles]}
    x, y = [tile.column for tile in tiles], [tile.row + shift for tile in tiles]
    return scatter(x=x, y=y, text=text, mode="text", textfont=font, hoverinfo="skip")
