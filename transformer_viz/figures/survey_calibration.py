"""How sure a model was of the tokens that it wrote, and how often it was right: a reliability diagram above its counts."""

from collections.abc import Sequence
from math import log10
from typing import Any

import plotly.graph_objects as go

from transformer_viz.analysis.survey.readings import Bin, calibration
from transformer_viz.analysis.survey.result import Confidence
from transformer_viz.errors import OptionError
from transformer_viz.figures.plain import Plain, PlainFigure, scatter
from transformer_viz.figures.survey_parts import SHARES, axis, chart_layout, titled
from transformer_viz.figures.theme import Theme, ThemeName, see_through, theme_of
from transformer_viz.numbers_in_words import percent_words

_UPPER, _LOWER = [0.36, 1.0], [0.0, 0.26]
"""Where accuracy and counts stand, as shares of the height."""
_LEAST = 0.7
"""Where the axis of counts begins: on a logarithmic scale, which has no 0, an empty bin lies here."""


def survey_calibration(confidence: Confidence, *, theme: ThemeName = "light", large: bool = False) -> go.Figure:
    """The share of right tokens over their probability, with 95 % intervals; below it how many tokens were written so surely.

    Points on the dotted diagonal are right as often as their probability says.

    Args:
        confidence: of a survey's outputs.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.

    Raises:
        OptionError: no token was written.
    """
    return plain_survey_calibration(confidence, theme=theme, large=large).to_plotly()


def plain_survey_calibration(confidence: Confidence, *, theme: ThemeName, large: bool) -> PlainFigure:
    """The same as plain data."""
    if not any(confidence.counts):
        raise OptionError("No token was written in this survey, so that there is no confidence to draw.")
    colours, size, (bins, _) = theme_of(theme), 16 if large else 13, calibration(confidence)
    drawn = [_diagonal(colours), *_points(bins, colours), _counts(confidence, colours), _said(confidence, colours)]
    return PlainFigure(drawn, {**chart_layout(colours, size, 470 if large else 400, 60), **_axes(confidence, colours, size)})


def _axes(confidence: Confidence, colours: Theme, size: int) -> dict[str, Any]:
    """Probabilities below both; shares above, and counts on a logarithmic scale, on which one bin does not hide all others."""
    counts = [10**power for power in range(len(str(max(confidence.counts))) + 1)]
    across = {
        **axis(colours, size, (-0.02, 1.02), SHARES, [f"{tick:g}" for tick in SHARES]),
        "domain": [0, 1],
        "showgrid": False,
    }
    right = axis(colours, size, (-0.03, 1.06), SHARES, [percent_words(tick) for tick in SHARES])
    tokens = axis(colours, size, (log10(_LEAST), log10(counts[-1])), counts, [f"{tick:,}" for tick in counts])
    return {
        "xaxis": {**across, "anchor": "y"},
        "yaxis": {**titled(right, "right", colours, size), "domain": _UPPER, "anchor": "x"},
        "xaxis2": {**titled(across, "probability of the token", colours, size), "anchor": "y2"},
        "yaxis2": {
            **titled(tokens, "tokens", colours, size),
            "domain": _LOWER,
            "anchor": "x2",
            "type": "log",
            "showgrid": False,
        },
    }


def _diagonal(colours: Theme) -> Plain:
    line = {"color": colours.muted, "width": 2, "dash": "dot"}
    marker = {"size": 9, "symbol": "diamond-open", "color": colours.muted, "line": {"width": 1.5}}
    return scatter(
        x=[0, 1], y=[0, 1], mode="lines", line=line, marker=marker, name="as often as its probability says", hoverinfo="skip"
    )


def _points(bins: Sequence[Bin], colours: Theme) -> list[Plain]:
    """Each bin's accuracy at its mean confidence, on a line as long as its interval."""
    if not bins:
        return []
    upright: tuple[list[float | None], list[float | None]] = ([], [])
    for each in bins:
        upright[0].extend((each.confidence, each.confidence, None))
        upright[1].extend((*each.interval, None))
    line = {"color": colours.chosen, "width": 2}
    marker = {"size": 9, "symbol": "circle", "color": colours.chosen}
    return [
        scatter(x=upright[0], y=upright[1], mode="lines", line=line, marker=marker, showlegend=False, hoverinfo="skip"),
        scatter(
            x=[each.confidence for each in bins],
            y=[each.accuracy for each in bins],
            mode="markers",
            marker=marker,
            name="tokens that are right, with their 95 % interval",
            hovertext=[_hover(each) for each in bins],
            hovertemplate="%{hovertext}<extra></extra>",
        ),
    ]


def _hover(each: Bin) -> str:
    low, high = each.interval
    return (
        f"probability {each.low:g} to {each.high:g}, mean <b>{each.confidence:.3f}</b><br>right <b>{each.accuracy:.3f}</b>, "
        f"95 %: {low:.3f} to {high:.3f}<br>{each.n:,} tokens judged"
    )


def _counts(confidence: Confidence, colours: Theme) -> Plain:
    """All written tokens."""
    x: list[float] = [confidence.edges[0]]
    y: list[float] = [_LEAST]
    for low, high, count in zip(confidence.edges, confidence.edges[1:], confidence.counts, strict=False):
        x += [low, high]
        y += [max(count, _LEAST)] * 2
    return scatter(
        x=[*x, confidence.edges[-1]],
        y=[*y, _LEAST],
        mode="lines",
        line={"color": colours.chosen, "width": 1.5},
        fill="toself",
        fillcolor=see_through(colours.chosen, 0.45),
        showlegend=False,
        hoverinfo="skip",
        xaxis="x2",
        yaxis="y2",
    )


def _said(confidence: Confidence, colours: Theme) -> Plain:
    """What the hand and the keyboard are told of the counts."""
    there = [
        ((low + high) / 2, count, f"probability {low:g} to {high:g}: <b>{count:,} tokens</b>")
        for low, high, count in zip(confidence.edges, confidence.edges[1:], confidence.counts, strict=False)
        if count
    ]
    x, y, words = (list(column) for column in zip(*there, strict=True))
    marker = {"size": 4, "symbol": "circle", "color": colours.chosen}
    return scatter(
        x=x, y=y, mode="markers", marker=marker, hovertext=words, hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False, xaxis="x2", yaxis="y2",
    )  # fmt: skip
