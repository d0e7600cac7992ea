"""One statistic of one head over all texts of a survey, as a histogram, beside its mean and that of uniform attention."""

from itertools import pairwise
from math import ceil, floor, log10
from typing import Any

import numpy as np

from transformer_viz.errors import OptionError
from transformer_viz.figures.figure_data import Plain, PlainFigure, plotly_figure, scatter
from transformer_viz.figures.parts import HOVER, axis, chart_layout, filled
from transformer_viz.figures.theme import Style, escape, see_through
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
    """Draws a histogram of a head's statistic over all texts, with a line at the mean, a band for its 95 % interval, and dots
    at the mean of uniform attention. The first and the last bin also count texts outside of them.

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
    edges, columns = of.edges[: last + 1], [list(one.counts[:last]) for one in both]
    # Values stand as they are between bins of one width, else by the number of their bin, so that all are seen.
    is_even = np.allclose(np.diff(edges), (edges[-1] - edges[0]) / (len(edges) - 1))
    places = list(edges) if is_even else [float(place) for place in range(len(edges))]
    if is_even:  # at most eight, at multiples of 1, 2 or 5 times a power of ten
        span = edges[-1] - edges[0]
        step = next(step for part in (0.1, 0.2, 0.5, 1, 2) if span / (step := part * 10.0 ** floor(log10(span))) <= 7)
        ticks = [step * place for place in range(ceil(edges[0] / step - 1e-9), floor(edges[-1] / step + 1e-9) + 1)]
    else:
        ticks = list(edges[:: -(-len(edges) // 9)])

    def at(value: float) -> float:
        """Where it stands; at the end if it lies outside."""
        return float(np.interp(value, edges, places))

    shares = [[count / one.n for count in counts] for one, counts in zip(both, columns, strict=True)]
    top = _SPARE * max(max(each) for each in shares)

    def upright(value: float, name: str, line: dict[str, Any], symbol: str) -> Plain:
        x, marker = at(value), {"size": 9, "symbol": symbol, "color": line["color"]}
        marker["line"] = {"width": 1.5, "color": line["color"]}
        return scatter(x=[x, x], y=[0.0, top], mode="lines", line=line, marker=marker, name=name, hoverinfo="skip")

    # The histogram as one filled outline, the other survey's as a line alone.
    outline = [place for ends in pairwise(places) for place in ends]
    heights = [[share for share in of_one for _ in range(2)] for of_one in shares]
    square: dict[str, Any] = {"size": 11, "symbol": "square", "color": colours.chosen}
    # What belongs together goes together by a click on the legend.
    texts, of_mean = {"legendgroup": "texts"}, {"legendgroup": "mean"}
    stairs = filled([outline[0], *outline, outline[-1]], [0.0, *heights[0], 0.0], fillcolor=see_through(colours.chosen, 0.45))
    drawn = [{**stairs, "line": {"color": colours.chosen, "width": 1.5}, "marker": square, **texts, "name": "texts"}]
    if other is not None:
        line = {"color": colours.ink, "width": 1.5, "dash": "dot"}
        looks: dict[str, Any] = {"line": line, "mode": "lines", "hoverinfo": "skip"}
        marker = {"size": 11, "symbol": "square-open", "color": colours.ink, "line": {"width": 1.5}}
        drawn.append(scatter(x=outline, y=heights[1], name="texts of the other survey", marker=marker, **looks))
    low, high = map(at, found.interval)
    band = [low, low, high, high, low], [0.0, top, top, 0.0, 0.0]
    drawn.append({**filled(*band, fillcolor=see_through(colours.accent, 0.28)), **of_mean, "showlegend": False})
    mean = f"mean {number_words(found.mean)}, 95 %: {interval_words(found.interval)}"
    drawn.append({**upright(found.mean, mean, {"color": colours.accent, "width": 2.5}, "diamond"), **of_mean})
    if found.uniform is not None:
        dotted = {"color": colours.muted, "width": 2.5, "dash": "dot"}
        drawn.append(upright(found.uniform, f"uniform attention {number_words(found.uniform)}", dotted, "diamond-open"))
    # A small mark on each bin that has texts, which says how many: for the hand, the keyboard and a screen reader.
    bins = zip(pairwise(places), pairwise(edges), columns[0], shares[0], strict=True)
    marks = [(sum(ends) / 2, share, bin_ends, count) for ends, bin_ends, count, share in bins if count]
    hovers = [
        f"{low:.4g} to {high:.4g}: <b>{count_words(n, 'text')}</b>, {percent_words(y, 1)}" for _, y, (low, high), n in marks
    ]
    dot = {"size": 4, "symbol": "circle", "color": colours.chosen}
    x, y = [place for place, *_ in marks], [share for _, share, *_ in marks]
    dots: dict[str, Any] = {"mode": "markers", "marker": dot, "hovertext": hovers, "hovertemplate": HOVER, "showlegend": False}
    drawn.append(scatter(x=x, y=y, **dots, **texts))
    spare = 0.01 * (places[-1] - places[0])
    ends, across = (places[0] - spare, places[-1] + spare), {"tickvals": [*map(at, ticks)]}
    step = next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25) if top / step <= 6)
    of_texts = [step * place for place in range(int(top / step) + 1)]
    words: dict[str, Any] = {"tickvals": of_texts, "ticktext": [percent_words(tick) for tick in of_texts], "showgrid": True}
    return PlainFigure(
        drawn,
        {
            **chart_layout(colours, size, _LARGE if style.large else _HEIGHT, left=52),
            "xaxis": axis(colours, size, ends, escape(of.title), **across, ticktext=[f"{x:.3g}" for x in ticks]),
            "yaxis": axis(colours, size, (0, top), "texts", **words),
        },
    )
