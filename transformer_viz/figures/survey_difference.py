"""Two surveys, head by head: the difference of a number, and which differences are within their interval."""

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.survey.compare import HeadChange, SurveyComparison
from transformer_viz.errors import OptionError
from transformer_viz.figures.cells import hatch_outline
from transformer_viz.figures.grades import ink_on
from transformer_viz.figures.overview import plain_overview
from transformer_viz.figures.plain import Plain, PlainFigure, heatmap, scatter
from transformer_viz.figures.survey_parts import HOVER, Tile, with_tiles
from transformer_viz.figures.theme import Theme, ThemeName, escape, even, flat, theme_of
from transformer_viz.numbers_in_words import interval_words, number_words, signed_words
from transformer_viz.terms import KIND_TITLES, Kind, head_title


def survey_difference(
    comparison: SurveyComparison,
    kind: Kind,
    focus: tuple[int, int] | None = None,
    *,
    theme: ThemeName = "light",
    large: bool = False,
) -> go.Figure:
    """Layers × heads: blue where the second survey has more, orange where it has less; hatched where 0 is within the interval.

    Args:
        comparison: from `tv.compare_surveys`. Its largest difference, of any kind, has the strongest colour.
        kind: `encoder`, `decoder` or `cross`.
        focus: layer and head to outline.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.

    Raises:
        OptionError: no head of this kind has the number in both.
    """
    return plain_survey_difference(comparison, kind, focus, theme=theme, large=large).to_plotly()


def plain_survey_difference(
    comparison: SurveyComparison, kind: Kind, focus: tuple[int, int] | None = None, *, theme: ThemeName, large: bool
) -> PlainFigure:
    """The same as plain data."""
    heads, colours = list(comparison.of(kind)), theme_of(theme)
    if not heads:
        raise OptionError(f"No head of kind {kind!r} has this number in both surveys.")
    layers = tuple(sorted({head.layer for head in heads}))
    shape = (len(layers), 1 + max(head.head for head in heads))
    clear, unclear = np.full(shape, np.nan), np.full(shape, np.nan)
    hovers, tiles = [[""] * shape[1] for _ in layers], list[Tile]()
    most = max((abs(head.difference) for head in comparison.clear()), default=0.0) or 1.0
    for head in heads:
        row = layers.index(head.layer)
        (clear if head.is_clear else unclear)[row, head.head] = head.difference
        hovers[row][head.head] = _hover(head, comparison.reading.title)
        ink = ink_on(0.5 + 0.5 * head.difference / most, colours, colours.diverging)
        tiles += [Tile(row, head.head, signed_words(head.difference), ink)] if head.is_clear else []
    drawn = plain_overview(kind, layers, clear, KIND_TITLES[kind], focus, theme=theme, large=large)
    axis, (cells, *outline) = _signed(drawn.layout["coloraxis"], most, colours), drawn.data
    below = _within(unclear, {"text": hovers, "hovertemplate": HOVER}, colours)
    return with_tiles(PlainFigure([cells, *below, *outline], {**drawn.layout, "coloraxis": axis}), hovers, tiles, large=large)


def _within(unclear: np.ndarray, hover: Plain, colours: Theme) -> list[Plain]:
    """A hatch where the difference is within its interval, and below it cells that answer the hand."""
    if np.isnan(unclear).all():
        return []
    there = np.where(np.isnan(unclear), np.float32(np.nan), np.float32(0))
    below = heatmap(
        z=there, zmin=0, zmax=1, colorscale=flat(colours.masked), showscale=False, xgap=1, ygap=1, hoverongaps=False, **hover
    )
    x, y = hatch_outline(~np.isnan(unclear))
    pattern = {"shape": "/", "fgcolor": colours.hatch, "bgcolor": colours.masked, "size": 7, "solidity": 0.18}
    return [below, scatter(x=x, y=y, mode="lines", line={"width": 0}, fill="toself", fillpattern=pattern, hoverinfo="skip")]


def _signed(axis: Plain, most: float, colours: Theme) -> Plain:
    ticks = {"tickvals": [-most, 0, most], "ticktext": [f"−{most:.2g}", "0", f"+{most:.2g}"]}
    return {
        **axis, "cmin": -most, "cmax": most, "colorscale": even(colours.diverging), "colorbar": {**axis["colorbar"], **ticks}
    }  # fmt: skip


def _hover(head: HeadChange, title: str) -> str:
    within = "" if head.is_clear else "<br>within the interval: no difference is seen"
    return (
        f"<b>{head_title(head.layer, head.head)}</b><br>{escape(title)}: {number_words(head.a.value)} → "
        f"{number_words(head.b.value)}, difference <b>{signed_words(head.difference)}</b><br>"
        f"95 %: {interval_words((head.low, head.high), signed_words)}{within}"
    )
