"""Two surveys, head by head: the difference of a number, and which differences are within their interval."""

from typing import Any

import numpy as np

from transformer_viz.errors import OptionError
from transformer_viz.figures.cells import hatch_trace
from transformer_viz.figures.figure_data import Plain, PlainFigure, plotly_figure
from transformer_viz.figures.theme import Style, escape, flat_scale, ink_on
from transformer_viz.figures.tiles import Tile, head_cells, tile_map
from transformer_viz.numbers_in_words import interval_words, number_words, signed_words
from transformer_viz.surveys.comparison import SurveyComparison
from transformer_viz.terms import KIND_TITLES, Kind, head_title


@plotly_figure
def survey_difference(
    comparison: SurveyComparison, kind: Kind, focus: tuple[int, int] | None = None, *, style: Style = Style()
) -> PlainFigure:
    """Draws layers × heads: blue where the second survey has more, orange where less, hatched where the interval holds 0.

    Args:
        comparison: from `tv.compare_surveys`. Its largest difference, of any kind, has the strongest colour.
        kind: `encoder`, `decoder` or `cross`.
        focus: layer and head to outline.
        style: theme and size.

    Raises:
        OptionError: no head of this kind has the number in both.
    """
    heads, colours = comparison.of(kind), style.colours
    if not heads:
        raise OptionError(f"No head of kind {kind!r} has this number in both surveys.")
    layers, title = tuple(sorted({head.place.layer for head in heads})), escape(comparison.column.title)
    shape = (len(layers), 1 + max(head.place.head for head in heads))
    significant, unclear = np.full(shape, np.nan), np.zeros(shape, bool)
    hovers, tiles = [[""] * shape[1] for _ in layers], []
    most = max((abs(head.difference) for head in comparison.significant()), default=0.0) or 1.0
    for head in heads:
        row, column = layers.index(head.place.layer), head.place.head
        hovers[row][column] = (
            f"<b>{head_title(head.place.layer, column)}</b><br>{title}: {number_words(head.a.mean)} → "
            f"{number_words(head.b.mean)}, difference <b>{signed_words(head.difference)}</b><br>"
            f"95 %: {interval_words(head.interval, signed_words)}"
            + ("" if head.is_significant else "<br>within the interval: no difference is seen")
        )
        if head.is_significant:
            significant[row, column] = head.difference
            ink = ink_on(0.5 + 0.5 * head.difference / most, colours, colours.diverging)
            tiles.append(Tile(row, column, signed_words(head.difference), ink))
        else:
            unclear[row, column] = True
    # A hatch where the difference is within its interval, and below it cells that answer the hand.
    within: list[Plain] = []
    if unclear.any():
        cells = np.where(unclear, np.float32(0), np.float32(np.nan))
        within = [head_cells(cells, hovers, "", gap=1, zmin=0, zmax=1, colorscale=flat_scale(colours.masked))]
        within.append(hatch_trace(unclear, colours))
    more: dict[str, Any] = {"hovers": hovers, "tiles": tiles, "others": within}
    return tile_map(kind, layers, significant, KIND_TITLES[kind], focus, style, limit=most, **more)
