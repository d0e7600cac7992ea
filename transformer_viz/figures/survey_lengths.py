"""How right the outputs of a survey are at each length of the source, with intervals."""

from collections.abc import Sequence

import plotly.graph_objects as go

from transformer_viz.analysis.intervals import wilson
from transformer_viz.analysis.survey.result import CorrectAtLength, SurveyedOutputs
from transformer_viz.errors import OptionError
from transformer_viz.figures.plain import Plain, PlainFigure, scatter
from transformer_viz.figures.survey_parts import SHARES, axis, chart_layout, titled
from transformer_viz.figures.theme import Theme, ThemeName, see_through, theme_of
from transformer_viz.numbers_in_words import count_words, interval_words, percent_words


def survey_lengths(outputs: SurveyedOutputs, *, theme: ThemeName = "light", large: bool = False) -> go.Figure:
    """Exact match by length with its 95 % interval, the share of right tokens, and BLEU where it is known.

    Args:
        outputs: of a survey.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.

    Raises:
        OptionError: of no output the answer is known.
    """
    return plain_survey_lengths(outputs, theme=theme, large=large).to_plotly()


def plain_survey_lengths(outputs: SurveyedOutputs, *, theme: ThemeName, large: bool) -> PlainFigure:
    """The same as plain data."""
    points = [point for point in outputs.by_length if point.n_known]
    if not points:
        raise OptionError("Of no output the right answer is known, so that none can be counted as right.")
    colours, size = theme_of(theme), 16 if large else 13
    drawn = [_interval(points, colours), _exact(points, colours), _tokens(points, colours), *_bleu(points, colours)]
    shares = axis(colours, size, (-0.03, 1.06), SHARES, [percent_words(tick) for tick in SHARES])
    axes = {"xaxis": _lengths([point.length for point in points], colours, size), "yaxis": shares}
    return PlainFigure(drawn, {**chart_layout(colours, size, 400 if large else 320, 48), **axes})


def _exact(points: Sequence[CorrectAtLength], colours: Theme) -> Plain:
    return scatter(
        x=[point.length for point in points],
        y=[point.n_exact / point.n_known for point in points],
        mode="lines+markers",
        name="whole output right",
        line={"color": colours.chosen, "width": 2.5},
        marker={"size": 7, "symbol": "circle", "color": colours.chosen},
        hovertext=[_hover(point) for point in points],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _hover(point: CorrectAtLength) -> str:
    low, high = wilson(point.n_exact, point.n_known)
    lines = [
        f"<b>{count_words(point.length, 'token')}</b>",
        f"{point.n_exact:,} of {point.n_known:,} texts right, {percent_words(point.n_exact / point.n_known, 1)}",
        f"95 %: {interval_words((low, high), percent_words, 1)}",
    ]
    lines += [f"{point.n_right:,} of {point.n_tokens:,} tokens right"] if point.n_tokens else []
    lines += [] if point.bleu is None else [f"BLEU {point.bleu:.1f}"]
    return "<br>".join(lines)


def _interval(points: Sequence[CorrectAtLength], colours: Theme) -> Plain:
    lengths = [float(point.length) for point in points]
    low, high = (list(end) for end in zip(*(wilson(point.n_exact, point.n_known) for point in points), strict=True))
    if len(lengths) == 1:  # a band needs a width to be seen
        lengths, low, high = [lengths[0] - 0.2, lengths[0] + 0.2], low * 2, high * 2
    colour = see_through(colours.chosen, 0.28)
    return scatter(
        x=[*lengths, *lengths[::-1], lengths[0]],
        y=[*high, *low[::-1], high[0]],
        mode="lines",
        line={"width": 0},
        fill="toself",
        fillcolor=colour,
        marker={"size": 11, "symbol": "square", "color": colour},
        name="its 95 % interval (Wilson)",
        hoverinfo="skip",
    )


def _tokens(points: Sequence[CorrectAtLength], colours: Theme) -> Plain:
    there = [point for point in points if point.n_tokens]
    return scatter(
        x=[point.length for point in there],
        y=[point.n_right / point.n_tokens for point in there],
        mode="lines+markers",
        name="tokens right at their place",
        line={"color": colours.accent, "width": 2, "dash": "dot"},
        marker={"size": 7, "symbol": "diamond-open", "color": colours.accent, "line": {"width": 1.5}},
        hoverinfo="skip",
    )


def _bleu(points: Sequence[CorrectAtLength], colours: Theme) -> list[Plain]:
    there = [(point.length, point.bleu / 100) for point in points if point.bleu is not None]
    if not there:
        return []
    x, y = (list(column) for column in zip(*there, strict=True))
    marker = {"size": 7, "symbol": "square-open", "color": colours.ink, "line": {"width": 1.5}}
    line = {"color": colours.ink, "width": 1.5}
    return [scatter(x=x, y=y, mode="lines+markers", name="BLEU, of 100", line=line, marker=marker, hoverinfo="skip")]


def _lengths(lengths: list[int], colours: Theme, size: int) -> Plain:
    first, last = lengths[0], lengths[-1]
    step = next(step for power in range(7) for step in (10**power, 2 * 10**power, 5 * 10**power) if (last - first) / step <= 10)
    ticks = [tick for tick in range(first - first % step, last + 1, step) if tick >= first] or [first]
    found = axis(colours, size, (first - 0.5, last + 0.5), ticks, list(map(str, ticks)))
    return {**titled(found, "tokens of the source", colours, size), "showgrid": False}
