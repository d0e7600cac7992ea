"""The figures of a survey, and of two of them. Each function draws a result and needs no torch."""

from itertools import pairwise
from math import ceil, floor, log10
from typing import Any

import numpy as np

from transformer_viz.addresses import HeadAddress
from transformer_viz.errors import OptionError
from transformer_viz.figures.by_length import length_chart, right_words, share_line
from transformer_viz.figures.cells import cells_of, hatch_trace
from transformer_viz.figures.figure_data import Plain, PlainFigure, plotly_figure, scatter
from transformer_viz.figures.parts import HOVER, SHARES, axis, chart_layout, colour_axis, filled, named_axis, panel, panel_axes
from transformer_viz.figures.theme import Style, base_layout, escape, flat_scale, ink_on, see_through
from transformer_viz.figures.tiles import Tile, ends_of, head_cells, tile_map
from transformer_viz.language import known, say
from transformer_viz.numbers_in_words import count_words, interval_words, number_words, percent_words, signed_words
from transformer_viz.surveys.columns import SurveyComparison, calibration, column, values
from transformer_viz.surveys.result import Confidence, HeadStatistic, Survey, SurveyedOutputs
from transformer_viz.surveys.sentences import statistic_title
from transformer_viz.terms import Kind, head_label, head_title, kind_words


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
    title, layers, colours = escape(statistic_title(column(survey, name))), survey.kinds[kind].layers, style.colours
    numbers, hovers, tiles = values(survey, kind, name), [[""] * survey.kinds[kind].n_heads for _ in layers], []
    low, high = ends_of(numbers)
    for head in (place for place in survey.places if place.kind == kind):
        row, result, roles = layers.index(head.layer), survey.at(head, name), survey.roles(head)
        lines = [f"<b>{head_title(head.layer, head.head)}</b>"]
        if result is None:
            lines.append(say("{title}: no text has it", title=title))
        else:
            lines.append(
                say(
                    "{title} <b>{mean}</b>, 95 %: {interval}",
                    title=title,
                    mean=number_words(result.mean),
                    interval=interval_words(result.interval),
                )
            )
            lines += (
                [say("uniform attention {uniform}", uniform=number_words(result.uniform))] if result.uniform is not None else []
            )
        lines += [
            say("{role} in {share} of the texts", role=escape(known(role)), share=percent_words(share))
            for role, share in roles[:3]
        ]
        hovers[row][head.head] = "<br>".join(lines)
        ink = ink_on(None if result is None else (result.mean - low) / (high - low), colours)
        number = "–" if result is None else number_words(result.mean)
        tiles.append(Tile(row, head.head, number, ink, escape(known(next(iter(roles), ("",))[0]))))
    return tile_map(kind, layers, numbers, kind_words(kind), focus, style, hovers=hovers, tiles=tiles)


_HEIGHT, _LARGE = 300, 380
_SPARE = 1.12
"""Above the highest bin there is room for a line."""


@plotly_figure
def survey_distribution(
    survey: Survey,
    head: str | HeadAddress,
    statistic: str,
    *,
    other: HeadStatistic | None = None,
    style: Style = Style(),
) -> PlainFigure:
    """Draws a histogram of a head's statistic over all texts, with a line at the mean, a band for its 95 % interval, and dots
    at the mean of uniform attention. The first and the last bin also count texts outside of them.

    Args:
        survey: of many texts.
        head: the head, such as `cross.2.3`.
        statistic: such as `mass`.
        other: of the same head in another survey, which is drawn as a line beside it.
        style: theme and size.

    Raises:
        OptionError: there is no such head or statistic, or no text has it.
    """
    of, place = survey.statistic(statistic), survey.find(head)
    result = survey.at(place, statistic)
    if result is None:
        raise OptionError(f"No text has {statistic!r} of {head_title(place.layer, place.head)}.")
    colours, size = style.colours, style.size
    both = [result] if other is None else [result, other]
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
        """Finds the place of a value; at the end if it lies outside."""
        return float(np.interp(value, edges, places))

    shares = [[count / one.n for count in counts] for one, counts in zip(both, columns, strict=True)]
    top = _SPARE * max(max(of_one) for of_one in shares)

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
    drawn = [{**stairs, "line": {"color": colours.chosen, "width": 1.5}, "marker": square, **texts, "name": say("texts")}]
    if other is not None:
        line = {"color": colours.ink, "width": 1.5, "dash": "dot"}
        looks: dict[str, Any] = {"line": line, "mode": "lines", "hoverinfo": "skip"}
        marker = {"size": 11, "symbol": "square-open", "color": colours.ink, "line": {"width": 1.5}}
        drawn.append(scatter(x=outline, y=heights[1], name=say("texts of the other survey"), marker=marker, **looks))
    low, high = map(at, result.interval)
    band = [low, low, high, high, low], [0.0, top, top, 0.0, 0.0]
    drawn.append({**filled(*band, fillcolor=see_through(colours.accent, 0.28)), **of_mean, "showlegend": False})
    mean = say("mean {mean}, 95 %: {interval}", mean=number_words(result.mean), interval=interval_words(result.interval))
    drawn.append({**upright(result.mean, mean, {"color": colours.accent, "width": 2.5}, "diamond"), **of_mean})
    if result.uniform is not None:
        dotted = {"color": colours.muted, "width": 2.5, "dash": "dot"}
        drawn.append(
            upright(
                result.uniform, say("uniform attention {uniform}", uniform=number_words(result.uniform)), dotted, "diamond-open"
            )
        )
    # A small mark on each bin that has texts, which says how many: for the hand, the keyboard and a screen reader.
    bins = zip(pairwise(places), pairwise(edges), columns[0], shares[0], strict=True)
    marks = [(sum(ends) / 2, share, bin_ends, count) for ends, bin_ends, count, share in bins if count]
    hovers = [
        say(
            "{least:.4g} to {most:.4g}: <b>{texts}</b>, {share}",
            least=low,
            most=high,
            texts=count_words(n, "text"),
            share=percent_words(y, 1),
        )
        for _, y, (low, high), n in marks
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
            "xaxis": axis(colours, size, ends, escape(statistic_title(of)), **across, ticktext=[f"{x:.3g}" for x in ticks]),
            "yaxis": axis(colours, size, (0, top), say("texts"), **words),
        },
    )


@plotly_figure
def survey_difference(
    comparison: SurveyComparison, kind: Kind, focus: tuple[int, int] | None = None, *, style: Style = Style()
) -> PlainFigure:
    """Draws layers × heads: blue where the second survey has more, orange where less, hatched where the interval holds 0.

    Args:
        comparison: from `tv.compare_surveys`. Its largest difference, of any kind, has the strongest colour.
        kind: `encoder`, `decoder` or `cross`.
        focus: layer and head to outline.
        style: theme and size.

    Raises:
        OptionError: no head of this kind has the number in both.
    """
    heads, colours = comparison.of(kind), style.colours
    if not heads:
        raise OptionError(f"No head of kind {kind!r} has this number in both surveys.")
    layers, title = tuple(sorted({head.place.layer for head in heads})), escape(statistic_title(comparison.column))
    shape = (len(layers), 1 + max(head.place.head for head in heads))
    significant, unclear = np.full(shape, np.nan), np.zeros(shape, bool)
    hovers, tiles = [[""] * shape[1] for _ in layers], []
    most = max((abs(head.difference) for head in comparison.significant()), default=0.0) or 1.0
    for head in heads:
        row, column = layers.index(head.place.layer), head.place.head
        hovers[row][column] = say(
            "<b>{head}</b><br>{number}: {a} → {b}, difference <b>{difference}</b><br>95 %: {interval}",
            head=head_title(head.place.layer, column),
            number=title,
            a=number_words(head.a.mean),
            b=number_words(head.b.mean),
            difference=signed_words(head.difference),
            interval=interval_words(head.interval, signed_words),
        ) + ("" if head.is_significant else say("<br>within the interval: no difference is seen"))
        if head.is_significant:
            significant[row, column] = head.difference
            ink = ink_on(0.5 + 0.5 * head.difference / most, colours, colours.diverging)
            tiles.append(Tile(row, column, signed_words(head.difference), ink))
        else:
            unclear[row, column] = True
    # A hatch where the difference is within its interval, and below it cells that answer the hand.
    within: list[Plain] = []
    if unclear.any():
        cells = np.where(unclear, np.float32(0), np.float32(np.nan))
        within = [head_cells(cells, hovers, "", gap=1, zmin=0, zmax=1, colorscale=flat_scale(colours.masked))]
        within.append(hatch_trace(unclear, colours))
    more: dict[str, Any] = {"hovers": hovers, "tiles": tiles, "others": within}
    return tile_map(kind, layers, significant, kind_words(kind), focus, style, limit=most, **more)


_MOST_NAMED = 16
_LEAST_MAP, _CELL = 240, 14
"""Pixels of the map at least, and of one head among many."""


@plotly_figure
def survey_agreement(survey: Survey, kind: Kind, *, style: Style = Style()) -> PlainFigure:
    """Draws, for each two heads, the share of rows with the same largest key, among rows with a choice of keys: 0 to 1.

    Args:
        survey: of many texts.
        kind: `encoder`, `decoder` or `cross`.
        style: theme and size.

    Raises:
        OptionError: heads of this kind were not compared.
    """
    if not (rows := survey.agreement.get(kind)):
        raise OptionError(f"Heads of kind {kind!r} were not compared with each other in this survey.")
    colours, size, of = style.colours, style.size - 1, survey.kinds[kind]
    labels = [head_label(layer, head) for layer in of.layers for head in range(of.n_heads)]
    shares = np.array([[np.nan if share is None else share for share in row] for row in rows], dtype=np.float32)
    names: dict[str, Any] = {"every": -(-len(labels) // _MOST_NAMED), "tickfont": {"size": size - 1, "color": colours.ink}}
    return PlainFigure(
        [cells_of(shares, say("%{{y}} and %{{x}}<br>same key in <b>%{{z:.3f}}</b> of the rows"), coloraxis="coloraxis")],
        {
            **base_layout(colours, size),
            "height": 110 + max(_LEAST_MAP, len(labels) * _CELL),
            "margin": {"l": 56, "r": 50, "t": 30, "b": 56},
            "title": {"text": kind_words(kind), "font": {"size": size + 2, "color": colours.ink}, "x": 0.5},
            "coloraxis": colour_axis(colours, size, (0, 1), ("0", "0.5", "1")),
            "xaxis": named_axis(colours, size, labels, **names),
            "yaxis": named_axis(colours, size, labels, down=True, **names),
        },
    )


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
        lines += (
            [say("{n_right:,} of {n_tokens:,} tokens right", n_right=point.n_right, n_tokens=point.n_tokens)]
            if point.n_tokens
            else []
        )
        lines += [] if point.bleu is None else [say("BLEU {bleu:.1f}", bleu=point.bleu)]
        hovers.append("<br>".join(lines))
    counts = [(point.length, point.n_exact, point.n_known) for point in points]
    tokens = [(point.length, point.n_right / point.n_tokens if point.n_tokens else None) for point in points]
    bleu = [(point.length, None if point.bleu is None else point.bleu / 100) for point in points]
    dotted = {"line": {"color": colours.accent, "width": 2, "dash": "dot"}, "symbol": "diamond-open"}
    lines_below = share_line(say("tokens right at their place"), tokens, **dotted)
    lines_below += share_line(say("BLEU, of 100"), bleu, line={"color": colours.ink, "width": 1.5}, symbol="square-open")
    return length_chart(counts, hovers, lines_below, say("tokens of the source"), 400 if style.large else 320, style)


_UPPER, _LOWER = [0.36, 1.0], [0.0, 0.26]
"""The places of accuracy and counts, as shares of the height."""
_NO_COUNT = 0.7
"""The beginning of the axis of counts: on a logarithmic scale, which has no 0, an empty bin lies here."""


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
    drawn: list[Plain] = [scatter(x=[0, 1], y=[0, 1], name=say("as often as its probability says"), **diagonal, **quiet)]
    bins, _ = calibration(confidence)
    if bins:
        # Each bin's accuracy at its mean confidence, on a line as long as its interval.
        marker = {"size": 9, "symbol": "circle", "color": colours.chosen}
        x = [place for one in bins for place in (one.confidence, one.confidence, None)]
        y = [end for one in bins for end in (*one.interval, None)]
        hovers = [
            say(
                "probability {low} to {high}, mean <b>{confidence}</b><br>right <b>{accuracy}</b>, "
                "95 % interval: {interval} to {interval2}<br>{n:,} tokens judged",
                low=percent_words(one.low),
                high=percent_words(one.high),
                confidence=percent_words(one.confidence, 1),
                accuracy=percent_words(one.accuracy, 1),
                interval=percent_words(one.interval[0], 1),
                interval2=percent_words(one.interval[1], 1),
                n=one.n,
            )
            for one in bins
        ]
        name = say("tokens that are right, with their 95 % interval")
        intervals = {"line": {"color": colours.chosen, "width": 2}, "marker": marker, "showlegend": False, "legendgroup": name}
        points = {"x": [one.confidence for one in bins], "y": [one.accuracy for one in bins]}
        drawn.append(scatter(x=x, y=y, **intervals, **quiet))
        drawn.append(scatter(**points, marker=marker, name=name, legendgroup=name, hovertext=hovers, **dots))
    # All written tokens, as one filled outline; and what the hand and the keyboard are told of them.
    counted = list(zip(pairwise(confidence.edges), confidence.counts, strict=True))
    x = [confidence.edges[0], *(edge for ends, _ in counted for edge in ends), confidence.edges[-1]]
    y = [_NO_COUNT, *(max(count, _NO_COUNT) for _, count in counted for _ in range(2)), _NO_COUNT]
    area = {"line": {"color": colours.chosen, "width": 1.5}, "fill": "toself", "fillcolor": see_through(colours.chosen, 0.45)}
    there = [(low, high, count) for (low, high), count in counted if count]
    middles = {"x": [(low + high) / 2 for low, high, _ in there], "y": [count for *_, count in there]}
    count_hovers = [
        say(
            "probability {low} to {high}: <b>{count:,} tokens</b>",
            low=percent_words(low),
            high=percent_words(high),
            count=count,
        )
        for low, high, count in there
    ]
    marks = {"marker": {"size": 4, "symbol": "circle", "color": colours.chosen}, "hovertext": count_hovers, "showlegend": False}
    drawn += panel(2, [scatter(x=x, y=y, showlegend=False, **area, **quiet), scatter(**middles, **marks, **dots)])
    # Counts on a logarithmic scale, on which one bin does not hide all others.
    counts = [10**power for power in range(len(str(max(confidence.counts))) + 1)]
    probabilities: dict[str, Any] = {"tickvals": SHARES, "ticktext": [percent_words(tick) for tick in SHARES]}
    shares: dict[str, Any] = {"tickvals": SHARES, "ticktext": [percent_words(tick) for tick in SHARES], "showgrid": True}
    tokens: dict[str, Any] = {"tickvals": counts, "ticktext": [f"{tick:,}" for tick in counts], "type": "log"}
    ends, log_ends = (-0.02, 1.02), (log10(_NO_COUNT), log10(counts[-1]))
    upper = axis(colours, size, ends, **probabilities), axis(colours, size, (-0.03, 1.06), say("right"), **shares)
    lower = axis(colours, size, ends, say("probability of the token"), **probabilities)
    return PlainFigure(
        drawn,
        {
            **chart_layout(colours, size, 470 if large else 400, left=60),
            **panel_axes(1, *upper, [0, 1], _UPPER),
            **panel_axes(2, lower, axis(colours, size, log_ends, say("tokens"), **tokens), [0, 1], _LOWER),
        },
    )
