"""The effect of an edit or mistake on one head: the weights after it minus those before, cell by cell."""

from typing import Any

import numpy as np

from transformer_viz.addresses import AttentionAddress, find_map
from transformer_viz.comparison.align import common
from transformer_viz.figures import cells
from transformer_viz.figures.figure_data import PlainFigure, plotly_figure
from transformer_viz.figures.masks import mask_layout
from transformer_viz.figures.parts import colour_axis
from transformer_viz.figures.theme import Style
from transformer_viz.language import say
from transformer_viz.terms import head_title
from transformer_viz.trace.trace import Trace


@plotly_figure
def change(
    before: Trace,
    after: Trace,
    head: str | AttentionAddress,
    *,
    height: int = 330,
    style: Style = Style(),
) -> PlainFigure:
    """Draws the signed difference of one head's weights between two runs of the same source.

    The axes are those of `mask` for the run `after`: at the same height, the rows of both figures are level.

    Args:
        before: the run as it was.
        after: the changed run. A row or column that one of the two alone has stays blank.
        head: a head, such as `cross.2.3`, or all heads of a layer as one, `cross.2.mean` or `cross.2.max`; of a kind or a layer
            alone, such as `cross`, its first head.
        height: in pixels.
        style: theme and size.

    Raises:
        OptionError: a run has no such kind, layer or head.
    """
    colours, size = style.colours, style.size - 2
    kind, layer, number = find_map(head, after.grid)
    first, second = common(*(run.attentions[kind].head(layer, number) for run in (before, after)))
    masked = np.logical_and(*common(*(run.attentions[kind].head_mask(layer, number) for run in (before, after))))
    difference, layout = second - first, mask_layout(after, kind, "", style, height)
    title = {"text": say("{layer}: after − before", layer=head_title(layer, number)), "side": "top", "font": {"size": size + 3}}
    # A bar where the mask has its legend.
    bar: dict[str, Any] = {"x": 0, "xanchor": "left", "len": 0.6}
    words = (say("−1 less weight"), "0", say("more weight +1"))
    coloured = colour_axis(style.colours, size + 1, (-1, 1), words, signed=True, lying=True, **bar)
    coloured["colorbar"]["title"] = title
    return PlainFigure(
        [
            cells.number_cells(np.where(masked, np.nan, difference), "difference", "%{z:+.4f}", coloraxis="coloraxis"),
            *cells.hidden(masked & ~np.isnan(difference), colours, say("masked in both")),
            *cells.broken(difference, colours),
        ],
        {
            **layout,
            "showlegend": False,
            "yaxis": cells.token_axes(after, kind, colours, size)[1],
            "coloraxis": coloured,
        },
    )
