"""One head's map at several moments of training, side by side: how attention forms."""

from collections.abc import Sequence

import numpy as np

from transformer_viz.figures.figure_data import PlainFigure, plotly_figure
from transformer_viz.figures.maps import share_scale
from transformer_viz.figures.mosaic import Grid
from transformer_viz.figures.theme import Style, escape
from transformer_viz.terms import Head, Kind
from transformer_viz.text_display import shorten
from transformer_viz.trace.trace import Trace

_LONGEST_TEXT = 22


@plotly_figure
def snapshot_maps(
    moments: Sequence[tuple[str, Trace]],
    kind: Kind,
    layer: int,
    head: Head,
    *,
    per_row: int = 6,
    style: Style = Style(),
) -> PlainFigure:
    """Draws one head of several Traces with the same source and target, so that the rows of all maps correspond.

    Args:
        moments: a title for each, and the run.
        kind: `encoder`, `decoder` or `cross`.
        layer: from 0.
        head: from 0, or `mean` or `max`.
        per_row: how many stand side by side.
        style: theme and size.
    """
    colours, size, columns = style.colours, style.size - 1, min(per_row, len(moments))
    maps = [trace.attentions[kind].head(layer, head) for _, trace in moments]
    shape = max(map(len, maps)), max(values.shape[1] for values in maps)
    grid = Grid([escape(shorten(title, _LONGEST_TEXT)) for title, _ in moments], columns, shape)
    # A map that is smaller than another one ends before its tile does.
    weights = np.full((grid.n_rows, columns, *shape), np.nan, dtype=np.float32)
    masked = np.zeros(weights.shape, bool)
    for place, values, (_, trace) in zip(grid.places, maps, moments, strict=True):
        here = (*place, *map(slice, values.shape))
        masked[here] = trace.attentions[kind].head_mask(layer, head)
        weights[here] = np.where(masked[here], np.nan, values)
    drawn = grid.exact_maps(weights, share_scale(colours), [(masked, colours.masked)])
    return PlainFigure([*drawn, *grid.marks(colours, size)], grid.layout(colours, size, 40 + grid.n_rows * 190))
