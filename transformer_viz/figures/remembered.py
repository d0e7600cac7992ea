"""What a recurrence remembers: how much of each token is still in its memory. No map of attention, and not in its colours."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer_viz.errors import OptionError, listed
from transformer_viz.figures import cells
from transformer_viz.figures.theme import Theme, ThemeName, base_layout, labels, theme_of
from transformer_viz.terms import layer_label
from transformer_viz.trace.remembered import Remembered


def remembered(found: Remembered, layer: int | None = None, *, theme: ThemeName = "light", large: bool = False) -> go.Figure:
    """Rows are steps, row 0 on top; columns are the tokens that were read until then.

    Args:
        found: from `remembered`.
        layer: from 0; by default the last.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.

    Raises:
        OptionError: there is no recurrence in this layer.
    """
    layer = found.layers[-1] if layer is None else layer
    if layer not in found.layers:
        raise OptionError(f"layer {layer} has no recurrence; layers {listed(found.layers)} have one")
    colours, size, names = theme_of(theme), 17 if large else 13, labels(found.tokens)
    words = {"size": size - 1, "color": colours.muted}
    axis = {
        **cells.ticks(names, -(-len(names) // cells.MOST_TICKS)),
        **{"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "automargin": True},
    }
    return go.Figure(
        [_map(found.shares[found.layers.index(layer)], colours, words)],
        {
            **base_layout(colours, size),
            "title": {"text": f"Memory of the recurrence, {layer_label(layer)}", "font": {"size": size + 2}},
            "xaxis": {**axis, "title": {"text": "token put in", "font": words}},
            "yaxis": {**axis, "range": [len(names) - 0.5, -0.5], "title": {"text": "after reading", "font": words}},
            "height": 160 + max(200, 24 * len(names)),
            "margin": {"t": 48, "l": 8, "r": 8, "b": 64},
        },
    )


def _map(shares: np.ndarray, colours: Theme, words: dict[str, Any]) -> go.Heatmap:
    return go.Heatmap(
        z=cells.visible(shares, np.triu(np.ones(shares.shape, bool), 1)),
        zmin=0,
        zmax=1,
        colorscale=[[0, colours.paper], [1, colours.ink]],
        xgap=1,
        ygap=1,
        hoverongaps=False,
        colorbar={"thickness": 10, "outlinewidth": 0, "tickfont": words, "title": {"text": "still there", "font": words}},
        hovertemplate="after %{y}<br>of %{x}<br>still there <b>%{z:.4f}</b><extra></extra>",
    )
