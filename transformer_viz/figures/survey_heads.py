"""All heads of one kind by a number of a survey: a tile for each, with its role and its number where there is room."""

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.survey.readings import Estimate, estimate, of_kind, reading, roles, values
from transformer_viz.analysis.survey.result import Survey, SurveyedHead
from transformer_viz.figures.grades import ink_on
from transformer_viz.figures.overview import plain_overview
from transformer_viz.figures.plain import PlainFigure
from transformer_viz.figures.survey_parts import Tile, with_tiles
from transformer_viz.figures.theme import ThemeName, escape, theme_of
from transformer_viz.numbers_in_words import interval_words, number_words, percent_words
from transformer_viz.terms import KIND_TITLES, Kind, head_title


def survey_heads(
    survey: Survey,
    kind: Kind,
    name: str,
    focus: tuple[int, int] | None = None,
    *,
    theme: ThemeName = "light",
    large: bool = False,
) -> go.Figure:
    """Layers × heads; the colours go from the lowest to the highest number of this kind, which the bar says.

    Args:
        survey: of many texts.
        kind: `encoder`, `decoder` or `cross`.
        name: a statistic, such as `mass`, or `role mirror` for the share of texts with that role.
        focus: layer and head to outline.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.

    Raises:
        OptionError: the survey has no such number.
    """
    return plain_survey_heads(survey, kind, name, focus, theme=theme, large=large).to_plotly()


def plain_survey_heads(
    survey: Survey, kind: Kind, name: str, focus: tuple[int, int] | None = None, *, theme: ThemeName, large: bool
) -> PlainFigure:
    """The same as plain data."""
    compared, layers, colours = reading(survey, name), survey.kinds[kind].layers, theme_of(theme)
    numbers, hovers = values(survey, kind, name), [[""] * survey.kinds[kind].n_heads for _ in layers]
    low, high = _ends(numbers)
    tiles = list[Tile]()
    for head in of_kind(survey, kind):
        row, found = layers.index(head.layer), estimate(head, name)
        hovers[row][head.head] = _hover(head, compared.title, found)
        share = None if found is None else (found.value - low) / (high - low)
        number = "–" if found is None else number_words(found.value)
        tiles.append(Tile(row, head.head, number, ink_on(share, colours), escape(next(iter(roles(head)), ("",))[0])))
    drawn = plain_overview(kind, layers, numbers, KIND_TITLES[kind], focus, theme=theme, large=large)
    ticks = [low, (low + high) / 2, high]
    bar = {**drawn.layout["coloraxis"]["colorbar"], "tickvals": ticks, "ticktext": [f"{tick:.2g}" for tick in ticks]}
    axis = {**drawn.layout["coloraxis"], "cmin": low, "cmax": high, "colorbar": bar}
    return with_tiles(PlainFigure(drawn.data, {**drawn.layout, "coloraxis": axis}), hovers, tiles, large=large)


def _ends(numbers: np.ndarray) -> tuple[float, float]:
    """Of the colours: the lowest and the highest number, or where all are equal 0 to 1 around it."""
    known = numbers[np.isfinite(numbers)]
    if known.size and np.ptp(known) > 0:
        return float(known.min()), float(known.max())
    return float(known.min(initial=0)), float(known.max(initial=1))


def _hover(head: SurveyedHead, title: str, found: Estimate | None) -> str:
    lines = [f"<b>{head_title(head.layer, head.head)}</b>"]
    if found is None:
        lines.append(f"{escape(title)}: no text has it")
    else:
        lines.append(f"{escape(title)} <b>{number_words(found.value)}</b>, 95 %: {interval_words((found.low, found.high))}")
        lines += [f"uniform attention {number_words(found.even)}"] if found.even is not None else []
    lines += [f"{escape(role)} in {percent_words(share)} of the texts" for role, share in roles(head)[:3]]
    return "<br>".join(lines)
