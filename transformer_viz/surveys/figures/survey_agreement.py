"""How far heads of one kind look at the same key: head × head, over all texts of a survey."""

from typing import Any

import numpy as np

from transformer_viz.errors import OptionError
from transformer_viz.figures.cells import cells_of
from transformer_viz.figures.figure_data import PlainFigure, plotly_figure
from transformer_viz.figures.parts import colour_axis, named_axis
from transformer_viz.figures.theme import Style, base_layout
from transformer_viz.surveys.result import Survey
from transformer_viz.terms import KIND_TITLES, Kind, head_label

_MOST_NAMED = 16
_LEAST, _CELL = 240, 14
"""Pixels of the map at least, and of one head among many."""


@plotly_figure
def survey_agreement(survey: Survey, kind: Kind, *, style: Style = Style()) -> PlainFigure:
    """Draws, for each two heads, the share of rows with the same largest key, among rows with a choice of keys: 0 to 1.

    Args:
        survey: of many texts.
        kind: `encoder`, `decoder` or `cross`.
        style: theme and size.

    Raises:
        OptionError: heads of this kind were not compared.
    """
    if not (rows := survey.agreement.get(kind)):
        raise OptionError(f"Heads of kind {kind!r} were not compared with each other in this survey.")
    colours, size, of = style.colours, style.size - 1, survey.kinds[kind]
    labels = [head_label(layer, head) for layer in of.layers for head in range(of.n_heads)]
    shares = np.array([[np.nan if share is None else share for share in row] for row in rows], dtype=np.float32)
    names: dict[str, Any] = {"every": -(-len(labels) // _MOST_NAMED), "tickfont": {"size": size - 1, "color": colours.ink}}
    return PlainFigure(
        [cells_of(shares, "%{y} and %{x}<br>same key in <b>%{z:.3f}</b> of the rows", coloraxis="coloraxis")],
        {
            **base_layout(colours, size),
            "height": 110 + max(_LEAST, len(labels) * _CELL),
            "margin": {"l": 56, "r": 50, "t": 30, "b": 56},
            "title": {"text": KIND_TITLES[kind], "font": {"size": size + 2, "color": colours.ink}, "x": 0.5},
            "coloraxis": colour_axis(colours, size, (0, 1), ("0", "0.5", "1")),
            "xaxis": named_axis(colours, size, labels, **names),
            "yaxis": named_axis(colours, size, labels, down=True, **names),
        },
    )
