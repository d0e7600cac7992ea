"""One statistic of one head over all texts of a survey, as a histogram, beside its mean and that of uniform attention."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any

import numpy as np

from transformer_viz.errors import OptionError
from transformer_viz.figures.figure_data import Plain, PlainFigure, plotly_figure, scatter
from transformer_viz.figures.parts import HOVER, axis, chart_layout, filled
from transformer_viz.figures.theme import Style, Theme, escape, see_through
from transformer_viz.numbers_in_words import count_words, interval_words, number_words, percent_words
from transformer_viz.surveys.result import HeadStatistic, Survey
from transformer_viz.terms import Kind, head_title

_HEIGHT, _LARGE = 300, 380
_SPARE = 1.12
"""Above the highest bin there is room for a line."""


@plotly_figure
def survey_distribution(
    survey: Survey,
    kind: Kind,
    layer: int,
    head: int,
    statistic: str,
    *,
    other: HeadStatistic | None = None,
    style: Style = Style(),
) -> PlainFigure:
    """Shares of the texts by a head's statistic; a line at the mean, a band as wide as its 95 % interval, dots at uniform
    attention's mean. The first and the last bin also hold what lies outside.

    Args:
        survey: of many texts.
        kind: `encoder`, `decoder` or `cross`.
        layer: from 0.
        head: from 0.
        statistic: such as `mass`.
        other: of the same head in another survey, which is drawn as a line beside it.
        style: theme and size.

    Raises:
        OptionError: there is no such head or statistic, or no text has it.
    """
    of, found = survey.statistic(statistic), survey.at(survey.place(kind, layer, head), statistic)
    if found is None:
        raise OptionError(f"No text has {statistic!r} of {head_title(layer, head)}.")
    colours, size = style.colours, style.size
    both = [found] if other is None else [found, other]
    # Edges and counts as far as there are texts; of a share all of them, so that heads can be compared.
    filled_bins = [place for one in both for place, count in enumerate(one.counts) if count]
    last = len(of.edges) - 1 if of.is_share else max(filled_bins) + 1
    scale, columns = _Scale(of.edges[: last + 1]), [list(one.counts[:last]) for one in both]
    shares = [[count / one.n for count in counts] for one, counts in zip(both, columns, strict=True)]
    top = _SPARE * max(max(each) for each in shares)

    def upright(value: float, name: str, line: dict[str, Any], symbol: str) -> Plain:
        x, marker = scale.at(value), {"size": 9, "symbol": symbol, "color": line["color"]}
        marker["line"] = {"width": 1.5, "color": line["color"]}
        return scatter(x=[x, x], y=[0.0, top], mode="lines", line=line, marker=marker, name=name, hoverinfo="skip")

    # The histogram as one filled outline, the other survey's as a line alone.
    edges = [place for ends in pairwise(scale.places) for place in ends]
    heights = [[share for share in of_one for _ in range(2)] for of_one in shares]
    square: dict[str, Any] = {"size": 11, "symbol": "square", "color": colours.chosen}
    stairs = filled([edges[0], *edges, edges[-1]], [0.0, *heights[0], 0.0], fillcolor=see_through(colours.chosen, 0.45))
    drawn = [{**stairs, "line": {"color": colours.chosen, "width": 1.5}, "marker": square, "name": "texts"}]
    if other is not None:
        looks: dict[str, Any] = {
            "line": {"color": colours.ink, "width": 1.5, "dash": "dot"},
            "mode": "lines",
            "hoverinfo": "skip",
        }
        marker = {"size": 11, "symbol": "square-open", "color": colours.ink, "line": {"width": 1.5}}
        drawn.append(scatter(x=edges, y=heights[1], name="texts of the other survey", marker=marker, **looks))
    low, high = (scale.at(end) for end in found.interval)
    band = [low, low, high, high, low], [0.0, top, top, 0.0, 0.0]
    drawn.append({**filled(*band, fillcolor=see_through(colours.accent, 0.28)), "showlegend": False})
    mean = f"mean {number_words(found.mean)}, 95 %: {interval_words(found.interval)}"
    drawn.append(upright(found.mean, mean, {"color": colours.accent, "width": 2.5}, "diamond"))
    if found.uniform is not None:
        dotted = {"color": colours.muted, "width": 2.5, "dash": "dot"}
        drawn.append(upright(found.uniform, f"uniform attention {number_words(found.uniform)}", dotted, "diamond-open"))
    drawn.append(_bins(scale, columns[0], found.n, colours))
    spare, (ticks, labels) = 0.01 * (scale.places[-1] - scale.places[0]), scale.ticks()
    ends = scale.places[0] - spare, scale.places[-1] + spare
    step = next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25) if top / step <= 6)
    of_texts = [step * place for place in range(int(top / step) + 1)]
    words: dict[str, Any] = {"tickvals": of_texts, "ticktext": [percent_words(tick) for tick in of_texts], "showgrid": True}
    return PlainFigure(
        drawn,
        {
            **chart_layout(colours, size, _LARGE if style.large else _HEIGHT, left=52),
            "xaxis": axis(colours, size, ends, escape(of.title), tickvals=ticks, ticktext=labels),
            "yaxis": axis(colours, size, (0, top), "texts", **words),
        },
    )


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
        hovertemplate=HOVER,
        showlegend=False,
    )


def _round_ticks(low: float, high: float) -> list[float]:
    """At most eight, at multiples of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** floor(log10(high - low))
    step = next(step for step in (0.1 * power, 0.2 * power, 0.5 * power, power, 2 * power) if (high - low) / step <= 7)
    return [step * place for place in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]
