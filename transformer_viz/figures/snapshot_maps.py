"""One head's map at several moments of training, side by side: how attention forms."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from transformer_viz.errors import shortened
from transformer_viz.figures.theme import ThemeName, base_layout, escape, even, flat, theme_of
from transformer_viz.terms import Head, Kind
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
    maps = [np.asarray(trace.attentions[kind].head(layer, head)) for _, trace in moments]
    masked = [np.asarray(trace.attentions[kind].head_reasons(layer, head)) > 0 for _, trace in moments]
    sheet = _Sheet([each.shape for each in maps], per_row)
    height, width = sheet.size
    visible = [np.where(hidden, np.nan, values) for values, hidden in zip(maps, masked, strict=True)]
    grey = [np.where(hidden, 1, np.nan) for hidden in masked]
    return go.Figure(
        [
            go.Heatmap(z=sheet.canvas(visible), zmin=0, zmax=1, colorscale=even(colours.scale), **_QUIET),
            go.Heatmap(z=sheet.canvas(grey), colorscale=flat(colours.masked), **_QUIET),
        ],
        {
            **base_layout(colours, 12),
            "height": 40 + sheet.n_rows * 190,
            "margin": {"l": 2, "r": 2, "t": 4, "b": 2},
            "xaxis": {"range": [-0.5, width - 0.5], "visible": False, "fixedrange": True},
            "yaxis": {"range": [height - 0.5, -0.5], "visible": False, "fixedrange": True},
            "shapes": [_frame(*place, sheet.n_keys, sheet.n_queries, colours.grid) for place in sheet.places],
            "annotations": [
                _caption(title, *place, colours.muted) for (title, _), place in zip(moments, sheet.places, strict=True)
            ],
        },
    )


class _Sheet:
    """Where each map stands among the others, in cells; each has a caption above it."""

    def __init__(self, shapes: Sequence[tuple[int, ...]], per_row: int) -> None:
        self.n_queries, self.n_keys = (max(shape[axis] for shape in shapes) for axis in (0, 1))
        gap, caption = max(1, round(self.n_keys * 0.12)), max(1, round(self.n_queries * 0.16))
        n_columns = min(per_row, len(shapes))
        self.n_rows = -(-len(shapes) // n_columns)
        pitch_x, pitch_y = self.n_keys + gap, self.n_queries + caption
        self.size = (self.n_rows * pitch_y, n_columns * pitch_x - gap)
        # Left and top of each.
        self.places = [((i % n_columns) * pitch_x, caption + (i // n_columns) * pitch_y) for i in range(len(shapes))]

    def canvas(self, maps: Sequence[np.ndarray]) -> np.ndarray:
        """All maps in one matrix, float32; NaN between them."""
        whole = np.full(self.size, np.nan, dtype=np.float32)
        for values, (left, top) in zip(maps, self.places, strict=True):
            whole[top : top + values.shape[0], left : left + values.shape[1]] = values
        return whole


def _caption(title: str, left: int, top: int, colour: str) -> dict[str, object]:
    return {
        "x": left - 0.5,
        "y": top - 0.5,
        "text": escape(shortened(title, _LONGEST_TEXT)),
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12, "color": colour},
    }


def _frame(left: int, top: int, n_keys: int, n_queries: int, colour: str) -> dict[str, object]:
    edges = {"x0": left - 0.5, "x1": left + n_keys - 0.5, "y0": top - 0.5, "y1": top + n_queries - 0.5}
    return {"type": "rect", **edges, "line": {"color": colour, "width": 1}}
