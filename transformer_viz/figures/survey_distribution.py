"""One statistic of one head over all texts of a survey, as a histogram, beside its mean and that of uniform attention."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.survey.result import Distribution, Survey, SurveyedStatistic
from transformer_viz.errors import OptionError
from transformer_viz.figures.plain import Plain, PlainFigure, scatter
from transformer_viz.figures.survey_parts import axis, chart_layout, titled
from transformer_viz.figures.theme import Theme, ThemeName, escape, see_through, theme_of
from transformer_viz.numbers_in_words import count_words, interval_words, number_words, percent_words
from transformer_viz.terms import Kind, head_title

_HEIGHT, _LARGE = 300, 380
_SPARE = 1.12
"""Above the highest bin there is room for a line."""


def survey_distribution(
    survey: Survey,
    kind: Kind,
    layer: int,
    head: int,
    statistic: str,
    *,
    theme: ThemeName = "light",
    large: bool = False,
) -> go.Figure:
    """Shares of the texts by a head's statistic; a line at the mean, a band as wide as its 95 % interval, dots at uniform
    attention's mean. The first and the last bin also hold what lies outside.

    Args:
        survey: of many texts.
        kind: `encoder`, `decoder` or `cross`.
        layer: from 0.
        head: from 0.
        statistic: such as `mass`.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.

    Raises:
        OptionError: there is no such head or statistic, or no text has it.
    """
    of, found = survey.statistic(statistic), survey.at(kind, layer, head).statistics[statistic]
    if found is None:
        raise OptionError(f"No text has {statistic!r} of {head_title(layer, head)}.")
    return plain_survey_distribution(of, found, theme=theme, large=large).to_plotly()


def plain_survey_distribution(
    of: SurveyedStatistic, found: Distribution, beside: Distribution | None = None, *, theme: ThemeName, large: bool
) -> PlainFigure:
    """The same as plain data; with the distribution of the same head in another survey beside it, where there is one."""
    colours, size = theme_of(theme), 16 if large else 13
    both = [found] if beside is None else [found, beside]
    scale, columns = _seen(of, both)
    shares = [[count / one.n for count in counts] for one, counts in zip(both, columns, strict=True)]
    top = _SPARE * max(max(each) for each in shares)
    drawn = [
        _stairs(scale, shares[0], colours),
        *([] if beside is None else [_outline(scale, shares[1], colours)]),
        *_mean(found, scale, top, colours),
        *_even(found, scale, top, colours),
        _bins(scale, columns[0], found.n, colours),
    ]
    axes = {"xaxis": _values_axis(of, scale, colours, size), "yaxis": _shares_axis(top, colours, size)}
    return PlainFigure(drawn, {**chart_layout(colours, size, _LARGE if large else _HEIGHT, 52), **axes})


@dataclass(frozen=True)
class _Scale:
    """Where values stand: as they are between bins of one width, else by the number of their bin, so that all are seen."""

    edges: Sequence[float]

    @property
    def is_even(self) -> bool:
        return bool(np.allclose(np.diff(self.edges), (self.edges[-1] - self.edges[0]) / (len(self.edges) - 1)))

    @property
    def places(self) -> list[float]:
        """Of the edges."""
        return list(self.edges) if self.is_even else [float(place) for place in range(len(self.edges))]

    def at(self, value: float) -> float:
        """Of a value; what lies outside stands at the end."""
        return float(np.interp(value, self.edges, self.places))

    def ticks(self) -> tuple[list[float], list[str]]:
        """Places, and the values there."""
        values = _round_ticks(self.edges[0], self.edges[-1]) if self.is_even else self.edges[:: -(-len(self.edges) // 9)]
        return [self.at(value) for value in values], [f"{value:.3g}" for value in values]


def _seen(of: SurveyedStatistic, both: Sequence[Distribution]) -> tuple[_Scale, list[list[int]]]:
    """Edges and counts as far as there are texts; of a share all of them, so that heads can be compared."""
    filled = [place for one in both for place, count in enumerate(one.counts) if count]
    last = len(of.edges) - 1 if of.is_share else max(filled) + 1
    return _Scale(of.edges[: last + 1]), [list(one.counts[:last]) for one in both]


def _stairs(scale: _Scale, shares: list[float], colours: Theme) -> Plain:
    """The histogram as one filled outline."""
    x, y = _steps(scale, shares)
    return scatter(
        x=[x[0], *x, x[-1]],
        y=[0.0, *y, 0.0],
        mode="lines",
        line={"color": colours.chosen, "width": 1.5},
        fill="toself",
        fillcolor=see_through(colours.chosen, 0.45),
        marker={"size": 11, "symbol": "square", "color": colours.chosen},
        name="texts",
        hoverinfo="skip",
    )


def _outline(scale: _Scale, shares: list[float], colours: Theme) -> Plain:
    """The other survey's, as a line alone."""
    x, y = _steps(scale, shares)
    line = {"color": colours.ink, "width": 1.5, "dash": "dot"}
    marker = {"size": 11, "symbol": "square-open", "color": colours.ink, "line": {"width": 1.5}}
    return scatter(x=x, y=y, mode="lines", line=line, marker=marker, name="texts of the other survey", hoverinfo="skip")


def _steps(scale: _Scale, shares: list[float]) -> tuple[list[float], list[float]]:
    x = [place for both in pairwise(scale.places) for place in both]
    return x, [share for share in shares for _ in range(2)]


def _mean(found: Distribution, scale: _Scale, top: float, colours: Theme) -> list[Plain]:
    """The interval as a band, the mean as a line in it."""
    low, high = scale.at(found.low), scale.at(found.high)
    band = scatter(
        x=[low, low, high, high, low],
        y=[0.0, top, top, 0.0, 0.0],
        mode="lines",
        line={"width": 0},
        fill="toself",
        fillcolor=see_through(colours.accent, 0.28),
        showlegend=False,
        hoverinfo="skip",
    )
    said = f"mean {number_words(found.mean)}, 95 %: {interval_words((found.low, found.high))}"
    return [band, _upright(scale.at(found.mean), top, said, {"color": colours.accent, "width": 2.5}, "diamond")]


def _even(found: Distribution, scale: _Scale, top: float, colours: Theme) -> list[Plain]:
    if found.even is None:
        return []
    said, line = f"uniform attention {number_words(found.even)}", {"color": colours.muted, "width": 2.5, "dash": "dot"}
    return [_upright(scale.at(found.even), top, said, line, "diamond-open")]


def _upright(x: float, top: float, name: str, line: dict[str, Any], symbol: str) -> Plain:
    marker = {"size": 9, "symbol": symbol, "color": line["color"], "line": {"width": 1.5, "color": line["color"]}}
    return scatter(x=[x, x], y=[0.0, top], mode="lines", line=line, marker=marker, name=name, hoverinfo="skip")


def _bins(scale: _Scale, counts: list[int], n: int, colours: Theme) -> Plain:
    """A small mark on each bin that has texts, which says how many: for the hand, the keyboard and a screen reader."""
    bins = zip(pairwise(scale.places), pairwise(scale.edges), counts, strict=True)
    there = [(sum(places) / 2, count, low, high) for places, (low, high), count in bins if count]
    return scatter(
        x=[place for place, *_ in there],
        y=[count / n for _, count, *_ in there],
        mode="markers",
        marker={"size": 4, "symbol": "circle", "color": colours.chosen},
        hovertext=[
            f"{low:.4g} to {high:.4g}: <b>{count_words(count, 'text')}</b>, {percent_words(count / n, 1)}"
            for _, count, low, high in there
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
    )


def _values_axis(of: SurveyedStatistic, scale: _Scale, colours: Theme, size: int) -> Plain:
    low, high = scale.places[0], scale.places[-1]
    spare, (ticks, labels) = 0.01 * (high - low), scale.ticks()
    found = axis(colours, size, (low - spare, high + spare), ticks, labels)
    return {**titled(found, escape(of.title), colours, size), "showgrid": False}


def _round_ticks(low: float, high: float) -> list[float]:
    """At most eight, at multiples of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** floor(log10(high - low))
    step = next(step for step in (0.1 * power, 0.2 * power, 0.5 * power, power, 2 * power) if (high - low) / step <= 7)
    return [step * place for place in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _shares_axis(top: float, colours: Theme, size: int) -> Plain:
    step = next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25) if top / step <= 6)
    ticks = [step * place for place in range(int(top / step) + 1)]
    return titled(axis(colours, size, (0, top), ticks, [percent_words(tick) for tick in ticks]), "texts", colours, size)
