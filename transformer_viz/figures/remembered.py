"""What a recurrence remembers: how much of each token is still in its memory. No map of attention, and not in its colours."""

import numpy as np

from transformer_viz.errors import OptionError, listed
from transformer_viz.figures.cells import cells_of, visible
from transformer_viz.figures.figure_data import PlainFigure, plotly_figure
from transformer_viz.figures.parts import colour_axis, named_axis
from transformer_viz.figures.theme import Style, base_layout, labels
from transformer_viz.terms import layer_label
from transformer_viz.trace.remembered import Remembered


@plotly_figure
def remembered(found: Remembered, layer: int | None = None, *, style: Style = Style()) -> PlainFigure:
    """Rows are steps, row 0 on top; columns are the tokens that were read until then.

    Args:
        found: from `remembered`.
        layer: from 0; by default the last.
        style: theme and size.

    Raises:
        OptionError: there is no recurrence in this layer.
    """
    layer = found.layers[-1] if layer is None else layer
    if layer not in found.layers:
        raise OptionError(f"layer {layer} has no recurrence; layers {listed(found.layers)} have one")
    colours, size, names, shares = style.colours, style.size, labels(found.tokens), found.shares[found.layers.index(layer)]
    values = visible(shares, np.triu(np.ones(shares.shape, bool), 1))
    bar = colour_axis(colours, size, (0, 1), title="still there", thickness=10)
    return PlainFigure(
        [cells_of(values, "after %{y}<br>of %{x}<br>still there <b>%{z:.4f}</b>", coloraxis="coloraxis")],
        {
            **base_layout(colours, size),
            "title": {"text": f"Memory of the recurrence, {layer_label(layer)}", "font": {"size": size + 2}},
            "coloraxis": {**bar, "colorscale": [[0, colours.paper], [1, colours.ink]]},
            "xaxis": named_axis(colours, size, names, "token put in"),
            "yaxis": named_axis(colours, size, names, "after reading", down=True),
            "height": 160 + max(200, 24 * len(names)),
            "margin": {"t": 48, "l": 8, "r": 8, "b": 64},
        },
    )
