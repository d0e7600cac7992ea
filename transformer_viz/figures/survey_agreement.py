"""How far heads of one kind look at the same key: head × head, over all texts of a survey."""

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.survey.result import Survey
from transformer_viz.errors import OptionError
from transformer_viz.figures import cells
from transformer_viz.figures.plain import Plain, PlainFigure, heatmap
from transformer_viz.figures.theme import FONT, Theme, ThemeName, base_layout, even, theme_of
from transformer_viz.terms import KIND_TITLES, Kind, head_label

_MOST_NAMED = 16
_LEAST, _CELL = 240, 14
"""Pixels of the map at least, and of one head among many."""


def survey_agreement(survey: Survey, kind: Kind, *, theme: ThemeName = "light", large: bool = False) -> go.Figure:
    """The share of rows with a choice of keys in which two heads have the same largest one, 0 to 1; 1 on the diagonal.

    Args:
        survey: of many texts.
        kind: `encoder`, `decoder` or `cross`.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.

    Raises:
        OptionError: heads of this kind were not compared.
    """
    return plain_survey_agreement(survey, kind, theme=theme, large=large).to_plotly()


def plain_survey_agreement(survey: Survey, kind: Kind, *, theme: ThemeName, large: bool) -> PlainFigure:
    """The same as plain data."""
    if not (rows := survey.agreement.get(kind)):
        raise OptionError(f"Heads of kind {kind!r} were not compared with each other in this survey.")
    colours, size, of = theme_of(theme), 15 if large else 12, survey.kinds[kind]
    labels = [head_label(layer, head) for layer in of.layers for head in range(of.n_heads)]
    shares = np.array([[np.nan if share is None else share for share in row] for row in rows], dtype=np.float32)
    bar = {
        "x": 1.0, "xanchor": "left", "len": 1, "y": 1, "yanchor": "top", "thickness": 8, "outlinewidth": 0,
        "tickfont": {"size": size - 1, "color": colours.muted}, "tickvals": [0, 0.5, 1], "ticktext": ["0", "0.5", "1"],
        "title": {"text": "", "font": {"size": size - 1, "color": colours.muted}},
    }  # fmt: skip
    return PlainFigure(
        [_shares(shares)],
        {
            **base_layout(colours, size),
            "height": 110 + max(_LEAST, len(labels) * _CELL),
            "margin": {"l": 56, "r": 50, "t": 30, "b": 56},
            "title": {"text": KIND_TITLES[kind], "font": {"size": size + 2, "color": colours.ink}, "x": 0.5},
            "hoverlabel": {"align": "left", "font": {"family": FONT, "size": size}},
            "coloraxis": {"cmin": 0, "cmax": 1, "colorscale": even(colours.scale), "colorbar": bar},
            "xaxis": {**_axis(labels, colours, size), "range": [-0.5, len(labels) - 0.5]},
            "yaxis": {**_axis(labels, colours, size), "range": [len(labels) - 0.5, -0.5]},
        },
    )  # fmt: skip


def _shares(shares: np.ndarray) -> Plain:
    gap = 1 if len(shares) <= 40 else 0
    hover = "%{y} and %{x}<br>same key in <b>%{z:.3f}</b> of the rows<extra></extra>"
    return heatmap(z=shares, coloraxis="coloraxis", xgap=gap, ygap=gap, hoverongaps=False, hovertemplate=hover)


def _axis(labels: list[str], colours: Theme, size: int) -> Plain:
    return {
        **cells.ticks(labels, -(-len(labels) // _MOST_NAMED)),
        "tickfont": {"size": size - 1, "color": colours.ink},
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "automargin": True,
        "ticks": "",
    }
