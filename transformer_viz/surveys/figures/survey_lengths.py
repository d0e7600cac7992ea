"""How right a survey's outputs are at each length of the source."""

from transformer_viz.errors import OptionError
from transformer_viz.figures.by_length import length_chart, right_words, share_line
from transformer_viz.figures.figure_data import PlainFigure, plotly_figure
from transformer_viz.figures.theme import Style
from transformer_viz.numbers_in_words import count_words
from transformer_viz.surveys.result import SurveyedOutputs


@plotly_figure
def survey_lengths(outputs: SurveyedOutputs, *, style: Style = Style()) -> PlainFigure:
    """Draws, over length, exact match with its 95 % interval, the share of right tokens, and BLEU where it is known.

    Args:
        outputs: of a survey.
        style: theme and size.

    Raises:
        OptionError: of no output the answer is known.
    """
    points, colours = [point for point in outputs.by_length if point.n_known], style.colours
    if not points:
        raise OptionError("No right answer is known in this survey, so there is no share to draw.")
    hovers = []
    for point in points:
        lines = [f"<b>{count_words(point.length, 'token')}</b>", right_words(point.n_exact, point.n_known)]
        lines += [f"{point.n_right:,} of {point.n_tokens:,} tokens right"] if point.n_tokens else []
        lines += [] if point.bleu is None else [f"BLEU {point.bleu:.1f}"]
        hovers.append("<br>".join(lines))
    counts = [(point.length, point.n_exact, point.n_known) for point in points]
    tokens = [(point.length, point.n_right / point.n_tokens if point.n_tokens else None) for point in points]
    bleu = [(point.length, None if point.bleu is None else point.bleu / 100) for point in points]
    dotted = {"line": {"color": colours.accent, "width": 2, "dash": "dot"}, "symbol": "diamond-open"}
    lines_below = share_line("tokens right at their place", tokens, **dotted)
    lines_below += share_line("BLEU, of 100", bleu, line={"color": colours.ink, "width": 1.5}, symbol="square-open")
    return length_chart(counts, hovers, lines_below, "tokens of the source", 400 if style.large else 320, style)
