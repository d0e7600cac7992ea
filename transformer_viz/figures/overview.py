"""All heads of a deep model as one small picture: a cell for each, coloured by one number."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.head_order import statistic
from transformer_viz.analysis.measures import MEASURES
from transformer_viz.figures import cells
from transformer_viz.figures.plain import Plain, PlainFigure, heatmap, scatter
from transformer_viz.figures.theme import Theme, ThemeName, base_layout, even, theme_of
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.trace import Trace

_ROW, _LEAST, _AROUND = 13, 200, 70
"""Pixels of a layer, of all of them at least, and of what stands around them."""
_MOST_NAMED = 12
"""Heads and layers whose numbers stand beside the picture."""


def overview(
    trace: Trace,
    kind: Kind,
    measure: str = "entropy_share",
    focus: tuple[int, Head] | None = None,
    *,
    theme: ThemeName = "light",
    large: bool = False,
) -> go.Figure:
    """Layers × heads by a measure. The colours go from the lowest to the highest number of all heads, which the bar says.

    Args:
        trace: the run.
        kind: `encoder`, `decoder` or `cross`.
        measure: as the file in `analysis/measures` is called.
        focus: layer and head to outline; `mean` and `max` outline the whole layer.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.

    Raises:
        OptionError: heads of this kind have no such measure.
    """
    values = statistic(trace, kind, measure)
    title, layers = MEASURES[measure].title, trace.attentions[kind].layers
    return plain_overview(kind, layers, values, title, focus, theme=theme, large=large).to_plotly()


def plain_overview(
    kind: Kind,
    layers: tuple[int, ...],
    values: np.ndarray,
    title: str,
    focus: tuple[int, Head] | None = None,
    *,
    theme: ThemeName,
    large: bool,
) -> PlainFigure:
    """The same as plain data, of (layer, head) values that are known, and of what they are called."""
    colours, size, (n_layers, n_heads) = theme_of(theme), 15 if large else 12, values.shape
    found = values[np.isfinite(values)]
    ends = (float(found.min()), float(found.max())) if found.size else (0.0, 1.0)
    above = {"text": title, "font": {"size": size + 2, "color": colours.ink}, "x": 0.5, "y": 0.985, "yanchor": "top"}
    return PlainFigure(
        [_cells(values, title), *_outline(layers, n_heads, focus, colours)],
        {
            **base_layout(colours, size),
            "height": _AROUND + max(_LEAST, n_layers * _ROW),
            "margin": {"l": 40, "r": 58, "t": 26, "b": 30},
            "title": above,
            "coloraxis": _colour_axis(colours, size, ends),
            "xaxis": _axis(range(n_heads), "head", colours, size),
            "yaxis": {**_axis(layers, "layer", colours, size), "range": [n_layers - 0.5, -0.5]},
            "meta": {"kind": kind, **_grid(layers, values)},
        },
    )


def _cells(values: np.ndarray, title: str) -> Plain:
    return heatmap(
        z=values.astype(np.float32),
        coloraxis="coloraxis",
        xgap=1,
        ygap=1,
        hoverongaps=False,
        hovertemplate=f"layer %{{y}} head %{{x}}<br>{title} <b>%{{z:.3f}}</b><extra></extra>",
    )


def _grid(layers: tuple[int, ...], values: np.ndarray) -> dict[str, Any]:
    """For clicks and for the keyboard, as a mosaic whose tiles are single cells; with what is said of each."""
    said = ["no number" if np.isnan(value) else f"{value:.3f}" for value in values.ravel()]
    tiles = [[layer, head] for layer in layers for head in range(values.shape[1])]
    return {"layers": len(layers), "heads": values.shape[1], "tiles": tiles, "said": said, "pitch_x": 1, "pitch_y": 1}


def _outline(layers: tuple[int, ...], n_heads: int, focus: tuple[int, Head] | None, colours: Theme) -> list[Plain]:
    if focus is None or focus[0] not in layers:
        return []
    row, head = layers.index(focus[0]), focus[1]
    left, right = (head, head) if isinstance(head, int) else (0, n_heads - 1)
    x = [left - 0.5, right + 0.5, right + 0.5, left - 0.5, left - 0.5]
    y = [row - 0.5, row - 0.5, row + 0.5, row + 0.5, row - 0.5]
    line = {"color": colours.accent, "width": 2.5}
    return [scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", cliponaxis=False)]


def _axis(numbers: Any, words: str, colours: Theme, size: int) -> dict[str, Any]:
    labels = [str(number + 1) for number in numbers]
    return {
        "range": [-0.5, len(labels) - 0.5],
        **cells.ticks(labels, -(-len(labels) // _MOST_NAMED)),
        "title": {"text": words, "font": {"size": size, "color": colours.muted}, "standoff": 4},
        "tickfont": {"size": size - 1, "color": colours.ink},
        "tickangle": 0,
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "automargin": True,
        "ticks": "",
    }


def _colour_axis(colours: Theme, size: int, ends: tuple[float, float]) -> dict[str, Any]:
    words, (low, high) = {"size": size - 1, "color": colours.muted}, ends
    ticks = [low, (low + high) / 2, high]
    bar: dict[str, Any] = {
        "x": 1.0, "xanchor": "left", "len": 1, "y": 1, "yanchor": "top", "thickness": 8, "outlinewidth": 0, "tickfont": words,
        "tickvals": ticks, "ticktext": [f"{tick:.2g}" for tick in ticks], "title": {"text": "", "font": words},
    }  # fmt: skip
    return {"cmin": low, "cmax": high, "colorscale": even(colours.scale), "colorbar": bar}
