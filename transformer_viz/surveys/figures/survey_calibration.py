"""How sure a model was of the tokens that it wrote, and how often it was right: a reliability diagram above its counts."""

from itertools import pairwise
from math import log10
from typing import Any

from transformer_viz.errors import OptionError
from transformer_viz.figures.figure_data import Plain, PlainFigure, plotly_figure, scatter
from transformer_viz.figures.parts import HOVER, SHARES, axis, chart_layout, panel, panel_axes
from transformer_viz.figures.theme import Style, see_through
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.surveys.columns import calibration
from transformer_viz.surveys.result import Confidence

_UPPER, _LOWER = [0.36, 1.0], [0.0, 0.26]
"""Where accuracy and counts stand, as shares of the height."""
_LEAST = 0.7
"""Where the axis of counts begins: on a logarithmic scale, which has no 0, an empty bin lies here."""


@plotly_figure
def survey_calibration(confidence: Confidence, *, style: Style = Style()) -> PlainFigure:
    """Draws the share of right tokens over their probability, with 95 % intervals, and below it the number of tokens.

    Points on the dotted diagonal are right as often as their probability says.

    Args:
        confidence: of a survey's outputs.
        style: theme and size.

    Raises:
        OptionError: no token was written.
    """
    if not any(confidence.counts):
        raise OptionError("No token was written in this survey, so there is no confidence to draw.")
    colours, size, large = style.colours, style.size, style.large
    dots: dict[str, Any] = {"mode": "markers", "hovertemplate": HOVER}
    quiet: dict[str, Any] = {"mode": "lines", "hoverinfo": "skip"}
    open_marker = {"size": 9, "symbol": "diamond-open", "color": colours.muted, "line": {"width": 1.5}}
    diagonal = {"line": {"color": colours.muted, "width": 2, "dash": "dot"}, "marker": open_marker}
    drawn: list[Plain] = [scatter(x=[0, 1], y=[0, 1], name="as often as its probability says", **diagonal, **quiet)]
    bins, _ = calibration(confidence)
    if bins:
        # Each bin's accuracy at its mean confidence, on a line as long as its interval.
        marker = {"size": 9, "symbol": "circle", "color": colours.chosen}
        x = [place for each in bins for place in (each.confidence, each.confidence, None)]
        y = [end for each in bins for end in (*each.interval, None)]
        hovers = [
            f"probability {each.low:g} to {each.high:g}, mean <b>{each.confidence:.3f}</b><br>right "
            f"<b>{each.accuracy:.3f}</b>, 95 %: {each.interval[0]:.3f} to {each.interval[1]:.3f}<br>{each.n:,} tokens judged"
            for each in bins
        ]
        name = "tokens that are right, with their 95 % interval"
        intervals = {"line": {"color": colours.chosen, "width": 2}, "marker": marker, "showlegend": False, "legendgroup": name}
        points = {"x": [each.confidence for each in bins], "y": [each.accuracy for each in bins]}
        drawn.append(scatter(x=x, y=y, **intervals, **quiet))
        drawn.append(scatter(**points, marker=marker, name=name, legendgroup=name, hovertext=hovers, **dots))
    # All written tokens, as one filled outline; and what the hand and the keyboard are told of them.
    counted = list(zip(pairwise(confidence.edges), confidence.counts, strict=True))
    x = [confidence.edges[0], *(edge for ends, _ in counted for edge in ends), confidence.edges[-1]]
    y = [_LEAST, *(max(count, _LEAST) for _, count in counted for _ in range(2)), _LEAST]
    area = {"line": {"color": colours.chosen, "width": 1.5}, "fill": "toself", "fillcolor": see_through(colours.chosen, 0.45)}
    there = [(low, high, count) for (low, high), count in counted if count]
    middles = {"x": [(low + high) / 2 for low, high, _ in there], "y": [count for *_, count in there]}
    said = [f"probability {low:g} to {high:g}: <b>{count:,} tokens</b>" for low, high, count in there]
    marks = {"marker": {"size": 4, "symbol": "circle", "color": colours.chosen}, "hovertext": said, "showlegend": False}
    drawn += panel(2, [scatter(x=x, y=y, showlegend=False, **area, **quiet), scatter(**middles, **marks, **dots)])
    # Counts on a logarithmic scale, on which one bin does not hide all others.
    counts = [10**power for power in range(len(str(max(confidence.counts))) + 1)]
    probabilities: dict[str, Any] = {"tickvals": SHARES, "ticktext": [f"{tick:g}" for tick in SHARES]}
    shares: dict[str, Any] = {"tickvals": SHARES, "ticktext": [percent_words(tick) for tick in SHARES], "showgrid": True}
    tokens: dict[str, Any] = {"tickvals": counts, "ticktext": [f"{tick:,}" for tick in counts], "type": "log"}
    ends, log_ends = (-0.02, 1.02), (log10(_LEAST), log10(counts[-1]))
    upper = axis(colours, size, ends, **probabilities), axis(colours, size, (-0.03, 1.06), "right", **shares)
    lower = axis(colours, size, ends, "probability of the token", **probabilities)
    return PlainFigure(
        drawn,
        {
            **chart_layout(colours, size, 470 if large else 400, left=60),
            **panel_axes(1, *upper, [0, 1], _UPPER),
            **panel_axes(2, lower, axis(colours, size, log_ends, "tokens", **tokens), [0, 1], _LOWER),
        },
    )
