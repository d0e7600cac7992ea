"""Draws all heads of a deep model as one small picture: a cell for each, coloured by one number."""

from transformer_viz.analysis.head_order import statistic
from transformer_viz.analysis.measures import MEASURES
from transformer_viz.figures.figure_data import PlainFigure, plotly_figure
from transformer_viz.figures.theme import Style
from transformer_viz.figures.tiles import tile_map
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.trace import Trace


@plotly_figure
def overview(
    trace: Trace,
    kind: Kind,
    measure: str = "entropy_share",
    focus: tuple[int, Head] | None = None,
    *,
    style: Style = Style(),
) -> PlainFigure:
    """Draws layers × heads by a measure. Colours go from the lowest to the highest number, which the bar shows.

    Args:
        trace: the run.
        kind: `encoder`, `decoder` or `cross`.
        measure: its name in `analysis.measures`.
        focus: layer and head to outline; `mean` and `max` outline the whole layer.
        style: theme and size.

    Raises:
        OptionError: heads of this kind have no such measure.
    """
    values = statistic(trace, kind, measure)
    return tile_map(kind, trace.attentions[kind].layers, values, MEASURES[measure].title, focus, style)
