"""Draws how right outputs are at each length of the source."""

from collections.abc import Sequence
from typing import Any

from transformer_viz.analysis.intervals import wilson
from transformer_viz.errors import OptionError
from transformer_viz.evaluation.result import AccuracyByLength
from transformer_viz.figures.figure_data import Plain, PlainFigure, plotly_figure, scatter
from transformer_viz.figures.parts import HOVER, SHARES, axis, chart_layout, filled, tick_step, words_at
from transformer_viz.figures.theme import Style, escape, see_through
from transformer_viz.language import say
from transformer_viz.numbers_in_words import count_words, interval_words, percent_words
from transformer_viz.terms import head_title


@plotly_figure
def accuracy_by_length(accuracy: AccuracyByLength, *, height: int | None = None, style: Style = Style()) -> PlainFigure:
    """Draws exact match over length with its 95 % interval, and the best head's mass below; trained lengths are shaded.

    Args:
        accuracy: from `evaluation.accuracy_by_length.accuracy_by_length`.
        height: in pixels.
        style: theme and size.

    Raises:
        OptionError: there is no length to draw.
    """
    if not accuracy.points:
        raise OptionError("There is no length to draw; measure at least one.")
    colours, size, best = style.colours, style.size, accuracy.best_head
    hovers, masses = [], []
    for point in accuracy.points:
        mass = accuracy.best_mass(point)
        masses.append((point.length, mass))
        lines = [
            say("<b>{tokens}</b>, as in training", tokens=count_words(point.length, "token"))
            if point.is_trained
            else say("<b>{tokens}</b>, outside training", tokens=count_words(point.length, "token")),
            right_words(point.n_exact, point.n_strings),
            say("tokens right: {token_accuracy}", token_accuracy=percent_words(point.token_accuracy, 1)),
            "" if mass is None else say("weight on the right token: {mass:.3f}", mass=mass),
        ]
        hovers.append("<br>".join(filter(None, lines)))
    counts = [(point.length, point.n_exact, point.n_strings) for point in accuracy.points]
    dotted = {"line": {"color": colours.accent, "width": 2, "dash": "dot"}, "symbol": "diamond-open"}
    mass_line = (
        share_line(say("weight on the right token, {head}", head=head_title(*best)), masses, **dotted)
        if best is not None
        else []
    )
    title = escape(say("tokens of the source, without <start> and <end>"))
    drawn = length_chart(counts, hovers, mass_line, title, height or (460 if style.large else 400), style)
    # The trained lengths as far as they are drawn; what they are stands between the legend and the chart.
    layout: dict[str, Any] = {**drawn.layout, "margin": {**drawn.layout["margin"], "t": 100 if style.narrow else 56}}
    (first, last), (start, end) = accuracy.trained, layout["xaxis"]["range"]
    left, right, spare = max(start, first - 0.5), min(end, last + 0.5), 0.12 * (end - start)
    if left >= right:
        return PlainFigure(drawn.data, layout)
    words = say("trained on {first}–{last}", first=first, last=last) if first < last else say("trained on {first}", first=first)
    middle = min(max((left + right) / 2, start + spare), end - spare)
    shade = {"fillcolor": see_through(colours.muted, 0.13), "line": {"width": 0}, "layer": "below"}
    box = {"type": "rect", "xref": "x", "yref": "paper", "x0": left, "x1": right, "y0": 0, "y1": 1, **shade}
    note = words_at(words, middle, 1, size, colours.muted, xref="x", xanchor="center")
    return PlainFigure(drawn.data, {**layout, "shapes": [box], "annotations": [note]})


def right_words(n_right: int, n: int) -> str:
    """Says how many outputs are right, with the 95 % interval of their share; markup."""
    interval = interval_words(wilson(n_right, n), percent_words, 1)
    return say(
        "whole output right: <b>{n_right:,} of {n:,}</b>, {n_right2} (95 % interval {interval})",
        n_right=n_right,
        n=n,
        n_right2=percent_words(n_right / n, 1),
        interval=interval,
    )


def share_line(name: str, points: Sequence[tuple[int, float | None]], *, line: dict[str, Any], symbol: str) -> list[Plain]:
    """A line of another share by length; no line where no length has it."""
    if all(share is None for _, share in points):
        return []
    x, y = (list(column) for column in zip(*points, strict=True))
    marker = {"size": 7, "symbol": symbol, "color": line["color"], "line": {"width": 1.5}}
    return [scatter(x=x, y=y, mode="lines+markers", name=name, line=line, marker=marker, hoverinfo="skip")]


def length_chart(
    counts: Sequence[tuple[int, int, int]],
    hovers: Sequence[str],
    others: Sequence[Plain],
    title: str,
    height: int,
    style: Style,
) -> PlainFigure:
    """Shares by length.

    Args:
        counts: for each length the number of right outputs, and of all.
        hovers: the hover of each length; markup.
        others: further lines beside the one of right outputs.
        title: of the axis of lengths; markup.
        height: in pixels.
        style: of the figure.
    """
    colours, size = style.colours, style.size
    lengths = [length for length, *_ in counts]
    ends = [wilson(n_right, n) for _, n_right, n in counts]
    x, low, high = [float(length) for length in lengths], [low for low, _ in ends], [high for _, high in ends]
    if len(lengths) == 1:  # a band needs a width to be seen
        x, low, high = [x[0] - 0.2, x[0] + 0.2], low * 2, high * 2
    colour, edges = see_through(colours.chosen, 0.28), (lengths[0] - 0.5, lengths[-1] + 0.5)
    marker = {"size": 11, "symbol": "square", "color": colour}
    band = filled([*x, *x[::-1]], [*high, *low[::-1]], fillcolor=colour, marker=marker, name=say("its 95 % interval (Wilson)"))
    exact = scatter(
        x=lengths,
        y=[n_right / n for _, n_right, n in counts],
        mode="lines+markers",
        name=say("whole output right"),
        legendrank=1,
        line={"color": colours.chosen, "width": 2.5},
        marker={"size": 7, "symbol": "circle", "color": colours.chosen},
        hovertext=list(hovers),
        hovertemplate=HOVER,
    )
    step = tick_step(edges[1] - edges[0], 8 if style.narrow else 20)
    ticks = [*range(-(-lengths[0] // step) * step, lengths[-1] + 1, step)] or [lengths[0]]
    across = axis(colours, size, edges, title, tickvals=ticks, ticktext=[*map(str, ticks)])
    words = [percent_words(share) for share in SHARES]
    shares = axis(colours, size, (-0.03, 1.06), showgrid=True, tickvals=SHARES, ticktext=words)
    layout = chart_layout(colours, size, height, left=48)
    return PlainFigure([band, exact, *others], {**layout, "xaxis": across, "yaxis": shares})
