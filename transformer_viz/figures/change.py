"""What a change does to one head: after − before, cell by cell beneath the cells of the mask."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.align import common
from transformer_viz.figures import cells
from transformer_viz.figures.maps import broken, heat_map, hidden
from transformer_viz.figures.masks import mask_layout
from transformer_viz.figures.theme import Theme, ThemeName, even, theme_of
from transformer_viz.terms import Head, Kind, head_title
from transformer_viz.trace.trace import Trace


def change(
    before: Trace,
    after: Trace,
    kind: Kind,
    layer: int | None = None,
    head: Head = 0,
    *,
    theme: ThemeName = "light",
    height: int = 330,
) -> go.Figure:
    """The signed difference of one head's weights in two runs of the same source, on the axes that `mask` draws for `after`.

    Beside a mask of the same height its rows stand beside the mask's.

    Args:
        before: the run as it was.
        after: the changed run. A row or column that one of the two alone has stays blank.
        kind: `encoder`, `decoder` or `cross`.
        layer: from 0; by default the first that the run has.
        head: from 0, or `mean` or `max` over the heads of the layer.
        theme: `light` or `dark`.
        height: in pixels.

    Raises:
        OptionError: a run has no such kind, layer or head.
    """
    colours, layer = theme_of(theme), after.attentions[kind].layers[0] if layer is None else layer
    first, second = common(*(run.attentions[kind].head(layer, head) for run in (before, after)))
    masked = np.logical_and(*common(*(run.attentions[kind].head_mask(layer, head) for run in (before, after))))
    difference = second - first
    layout = mask_layout(after, kind, "", colours, height)
    written = None if kind == "encoder" else after.output_tokens
    names = cells.query_labels(after.attentions[kind].queries, written)
    layout["yaxis"] = cells.query_axis(names, after.attentions[kind].queries, kind, colours, 11)
    drawn = [
        heat_map(np.where(masked, np.nan, difference), "difference", {"coloraxis": "coloraxis"}, "%{z:+.4f}"),
        *hidden(masked & ~np.isnan(difference), colours, "masked in both"),
        *broken(difference, colours),
    ]
    return go.Figure(
        drawn, {**layout, "showlegend": False, "coloraxis": _scale(f"{head_title(layer, head)}: after − before", colours)}
    )


def _scale(words: str, colours: Theme) -> dict[str, Any]:
    """From −1 to 1, with a lying bar where the mask has its legend, and over it what is drawn."""
    return {
        "cmin": -1,
        "cmax": 1,
        "colorscale": even(colours.diverging),
        "colorbar": {
            "orientation": "h",
            "title": {"text": words, "side": "top", "font": {"size": 14}},
            "x": 0,
            "xanchor": "left",
            "y": 1,
            "yanchor": "bottom",
            "len": 0.6,
            "thickness": 8,
            "xpad": 0,
            "ypad": 4,
            "outlinewidth": 1,
            "outlinecolor": colours.grid,
            "tickvals": [-1, 0, 1],
            "ticktext": ["−1 less weight", "0", "more weight +1"],
            "ticks": "",
            "ticklabelposition": "outside top",
            "tickfont": {"size": 11, "color": colours.muted},
        },
    }
