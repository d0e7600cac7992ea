"""One head's map at several moments of training, side by side: how attention forms."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.heads import Head, head_map, reasons_map
from transformer_viz.errors import shortened
from transformer_viz.figures.theme import ThemeName, base_layout, escape, even, flat, theme_of
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace

_QUIET = {"showscale": False, "hoverinfo": "none", "hoverongaps": False}
_LONGEST_TEXT = 22


def snapshot_maps(
    moments: Sequence[tuple[str, Trace]],
    kind: Kind,
    layer: int,
    head: Head,
    *,
    theme: ThemeName = "light",
    per_row: int = 6,
) -> go.Figure:
    """The same head of several Traces of one source and one target, so that the rows are the same everywhere.

    Args:
        moments: a title for each, and the run.
        kind: `encoder`, `decoder` or `cross`.
        layer: from 0.
        head: from 0, or `mean` or `max`.
        theme: `light` or `dark`.
        per_row: how many stand side by side.
    """
    colours = theme_of(theme)
    maps = [np.asarray(head_map(trace, kind, layer, head)) for _, trace in moments]
    masked = [np.asarray(reasons_map(trace, kind, layer, head)) > 0 for _, trace in moments]
    n_queries, n_keys = (max(m.shape[axis] for m in maps) for axis in (0, 1))
    gap, caption = max(1, round(n_keys * 0.12)), max(1, round(n_queries * 0.16))
    n_columns = min(per_row, len(maps))
    n_rows = -(-len(maps) // n_columns)
    size = (n_rows * (n_queries + caption), n_columns * (n_keys + gap) - gap)
    weights, grey = (np.full(size, np.nan, dtype=np.float32) for _ in range(2))
    places = []
    for i, (values, hidden) in enumerate(zip(maps, masked, strict=True)):
        top, left = caption + (i // n_columns) * (n_queries + caption), (i % n_columns) * (n_keys + gap)
        area = slice(top, top + values.shape[0]), slice(left, left + values.shape[1])
        weights[area] = np.where(hidden, np.nan, values)
        grey[area] = np.where(hidden, 1, np.nan)
        places.append((left, top))
    figure = go.Figure(
        [
            go.Heatmap(z=weights, zmin=0, zmax=1, colorscale=even(colours.scale), **_QUIET),
            go.Heatmap(z=grey, colorscale=flat(colours.masked), **_QUIET),
        ],
        {
            **base_layout(colours, 12),
            "height": 40 + n_rows * 190,
            "margin": {"l": 2, "r": 2, "t": 4, "b": 2},
            "xaxis": {"range": [-0.5, size[1] - 0.5], "visible": False, "fixedrange": True},
            "yaxis": {"range": [size[0] - 0.5, -0.5], "visible": False, "fixedrange": True},
            "shapes": [_frame(left, top, n_keys, n_queries, colours.grid) for left, top in places],
        },
    )
    for (title, _), (left, top) in zip(moments, places, strict=True):
        figure.add_annotation(
            x=left - 0.5,
            y=top - 0.5,
            text=escape(shortened(title, _LONGEST_TEXT)),
            xanchor="left",
            yanchor="bottom",
            showarrow=False,
            font={"size": 12, "color": colours.muted},
        )
    return figure


def _frame(left: int, top: int, n_keys: int, n_queries: int, colour: str) -> dict[str, object]:
    edges = {"x0": left - 0.5, "x1": left + n_keys - 0.5, "y0": top - 0.5, "y1": top + n_queries - 0.5}
    return {"type": "rect", **edges, "line": {"color": colour, "width": 1}}
