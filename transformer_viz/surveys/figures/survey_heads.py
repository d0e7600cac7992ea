"""All heads of one kind by a number of a survey: a tile for each, with its role and its number where there is room."""

from transformer_viz.figures.figure_data import PlainFigure, plotly_figure
from transformer_viz.figures.theme import Style, escape, ink_on
from transformer_viz.figures.tiles import Tile, ends_of, tile_map
from transformer_viz.numbers_in_words import interval_words, number_words, percent_words
from transformer_viz.surveys.columns import column, values
from transformer_viz.surveys.result import Survey
from transformer_viz.terms import KIND_TITLES, Kind, head_title


@plotly_figure
def survey_heads(
    survey: Survey, kind: Kind, name: str, focus: tuple[int, int] | None = None, *, style: Style = Style()
) -> PlainFigure:
    """Draws layers × heads by a number of a survey. Colours go from the lowest to the highest number, which the bar shows.

    Args:
        survey: of many texts.
        kind: `encoder`, `decoder` or `cross`.
        name: a statistic, such as `mass`, or `role mirror` for the share of texts with that role.
        focus: layer and head to outline.
        style: theme and size.

    Raises:
        OptionError: the survey has no such number.
    """
    title, layers, colours = escape(column(survey, name).title), survey.kinds[kind].layers, style.colours
    numbers, hovers, tiles = values(survey, kind, name), [[""] * survey.kinds[kind].n_heads for _ in layers], []
    low, high = ends_of(numbers)
    for head in (place for place in survey.places if place.kind == kind):
        row, found, roles = layers.index(head.layer), survey.at(head, name), survey.roles(head)
        lines = [f"<b>{head_title(head.layer, head.head)}</b>"]
        if found is None:
            lines.append(f"{title}: no text has it")
        else:
            lines.append(f"{title} <b>{number_words(found.mean)}</b>, 95 %: {interval_words(found.interval)}")
            lines += [f"uniform attention {number_words(found.uniform)}"] if found.uniform is not None else []
        lines += [f"{escape(role)} in {percent_words(share)} of the texts" for role, share in roles[:3]]
        hovers[row][head.head] = "<br>".join(lines)
        ink = ink_on(None if found is None else (found.mean - low) / (high - low), colours)
        number = "–" if found is None else number_words(found.mean)
        tiles.append(Tile(row, head.head, number, ink, escape(next(iter(roles), ("",))[0])))
    return tile_map(kind, layers, numbers, KIND_TITLES[kind], focus, style, hovers=hovers, tiles=tiles)
