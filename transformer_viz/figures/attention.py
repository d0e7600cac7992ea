"""One attention map, large: `figures.attention(trace, "cross", layer=0, head=0)`."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.heads import Head, head_map, layer_or_first, reasons_map
from transformer_viz.analysis.words import axis_noun, kind_title
from transformer_viz.figures import cells
from transformer_viz.figures.plain import Plain
from transformer_viz.figures.theme import Theme, ThemeName, base_layout, even, theme_of
from transformer_viz.terms import Kind, head_title
from transformer_viz.trace.trace import Trace


def attention(
    trace: Trace, kind: Kind, layer: int | None = None, head: Head = 0, *, theme: ThemeName = "light", large: bool = False
) -> go.Figure:
    """The map of one head: rows are queries, row 0 on top; columns are keys; range 0 to 1.

    Args:
        trace: the run.
        kind: `encoder`, `decoder` or `cross`.
        layer: from 0; by default the first that the run has.
        head: from 0, or `mean` or `max` over the heads of the layer.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.

    Raises:
        OptionError: the run has no such kind, layer or head.
    """
    colours, layer = theme_of(theme), layer_or_first(trace, kind, layer)
    size = 17 if large else 13
    written = None if kind == "encoder" else trace.output_tokens
    names = cells.query_labels(trace.queries(kind), written)
    return go.Figure(
        map_traces(head_map(trace, kind, layer, head), reasons_map(trace, kind, layer, head), colours),
        {
            **base_layout(colours, size),
            "coloraxis": colour_axis(colours, size),
            "title": {"text": f"{kind_title(trace, kind)}, {head_title(layer, head)}", "font": {"size": size + 2}},
            "xaxis": cells.key_axis(trace.keys(kind), kind, colours, size, noun=axis_noun(trace)),
            "yaxis": cells.query_axis(names, trace.queries(kind), kind, colours, size, noun=axis_noun(trace)),
            "height": 160 + max(240, 26 * len(names)),
            "margin": {"t": 48, "l": 8, "r": 8, "b": 8},
        },
    )


def map_traces(weights: np.ndarray, reasons: np.ndarray, theme: Theme) -> list[Plain]:
    """Weights on the shared colour axis, masked cells by reason, hatching: what a map consists of."""
    masked = reasons > 0
    hatch = [cells.hatch_trace(masked, theme)] if masked.any() else []
    grey = [cells.masked_trace(reasons, code, theme) for code in cells.codes_in(reasons)]
    return [cells.weights_trace(weights, masked), *grey, *hatch]


def colour_axis(theme: Theme, size: int, x: float = 1.01) -> dict[str, Any]:
    """The fixed range 0 to 1, with a thin bar at `x` (share of the figure's width)."""
    return {
        "cmin": 0,
        "cmax": 1,
        "colorscale": even(theme.scale),
        "colorbar": {
            "x": x,
            "xanchor": "left",
            "len": 0.6,
            "y": 1,
            "yanchor": "top",
            "thickness": 10,
            "outlinewidth": 0,
            "tickvals": [0, 0.5, 1],
            "tickfont": {"size": size - 1, "color": theme.muted},
            "title": {"text": "weight", "font": {"size": size - 1, "color": theme.muted}},
        },
    }
