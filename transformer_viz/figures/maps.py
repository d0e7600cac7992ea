"""Several maps of one head side by side: scores to weights, and before against after."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transformer_viz.addresses import AttentionAddress, find_head, find_map
from transformer_viz.analysis.softmax import Softmax
from transformer_viz.analysis.word_pooling import axis_noun
from transformer_viz.comparison.align import common
from transformer_viz.figures import cells
from transformer_viz.figures.figure_data import Plain, PlainFigure, plotly_figure
from transformer_viz.figures.parts import colour_axis, edge, frame, named_axis, panel, panel_axes, words_at
from transformer_viz.figures.theme import Style, Theme, base_layout, even_scale, token_label
from transformer_viz.language import say
from transformer_viz.terms import Head, Kind, place_label
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import PAD

_LONGEST_WORD, _SMALLEST = 9, 8
"""The most characters of a token in a label, and the smallest font size."""
PAGE_WIDTH, _PHONE_WIDTH = 1300, 350
"""About as many pixels as the page gives to the figure; row labels take a share of it."""
_HEAD = 40
"""Pixels above a map, for its title and colour bar."""


@plotly_figure
def softmax_maps(
    trace: Trace, head: str | AttentionAddress, computed: Softmax, row: int, *, style: Style = Style()
) -> PlainFigure:
    """Draws scores before and after the mask, and weights after the softmax; `row` has a frame.

    Args:
        trace: a run with scores (`record=("weights", "scores")`).
        head: the head, such as `cross.2.3`.
        computed: from `analysis.softmax` of the same scores.
        row: the query that has a frame.
        style: theme and size; the maps of a narrow figure stand below each other.

    Raises:
        OptionError: the run has no scores of this kind, or no such head.
    """
    place = find_head(head, trace.grid)
    kind, attention, weights, colours = place.kind, trace.attentions[place.kind], computed.weights, style.colours
    scores, masked = attention.head_scores(place.layer, place.head), attention.head_mask(place.layer, place.head)
    most = float(np.abs(scores[np.isfinite(scores)]).max(initial=1e-6))
    signed: dict[str, Any] = {"zmin": -most, "zmax": most, "colorscale": even_scale(colours.diverging), "showscale": False}
    after = np.where(masked, np.nan, computed.filled)
    # With some fills a fully masked row has weights, or no numbers: hidden is what really got nothing.
    nothing = [*cells.hidden(masked & (weights == 0), colours), *cells.broken(weights, colours)]
    maps = (
        (say("1. scores before the mask"), [cells.number_cells(scores, say("score"), **signed)]),
        (say("2. after the mask"), [cells.number_cells(after, say("score"), **signed), *cells.hidden(masked, colours)]),
        (say("3. weights after the softmax"), [cells.number_cells(weights, say("weight"), **share_scale(colours)), *nothing]),
    )
    framed = (0, row, len(attention.keys) - 1, row)
    return of_a_kind([Panel(title, *labels_of(trace, kind), drawn, framed) for title, drawn in maps], trace, kind, style)


@plotly_figure
def before_and_after(before: Trace, after: Trace, head: str | AttentionAddress, *, style: Style = Style()) -> PlainFigure:
    """Draws one head in two runs of the same source, and the signed difference in the cells that both have.

    Args:
        before: the run as it was.
        after: the changed run; its tokens label the rows of its own map.
        head: a head, such as `cross.2.3`, or all heads of a layer as one, `cross.2.mean` or `cross.2.max`; of a kind or a layer
            alone, such as `cross`, its first head.
        style: theme and size; the maps of a narrow figure stand below each other.

    Raises:
        OptionError: a run has no such kind, layer or head.
    """
    colours = style.colours
    kind, layer, number = find_map(head, before.grid)
    signed: dict[str, Any] = {"zmin": -1, "zmax": 1, "colorscale": even_scale(colours.diverging), "showscale": False}
    first, second = common(*(trace.attentions[kind].head(layer, number) for trace in (before, after)))
    change = cells.number_cells(second - first, say("difference"), "%{z:+.4f}", **signed)
    maps = (
        (say("before"), before, weight_map(before, kind, layer, number, colours, share_scale(colours))),
        (say("after"), after, weight_map(after, kind, layer, number, colours, share_scale(colours))),
        (say("after − before"), before, [change, *cells.broken(second - first, colours)]),
    )
    return of_a_kind([Panel(title, *labels_of(run, kind), drawn) for title, run, drawn in maps], before, kind, style)


def share_scale(colours: Theme) -> dict[str, Any]:
    """The colours of weights from 0 to 1, without a bar."""
    return {"zmin": 0, "zmax": 1, "colorscale": even_scale(colours.scale), "showscale": False}


def weight_map(run: Trace, kind: Kind, layer: int, head: Head, colours: Theme, scale: dict[str, Any]) -> list[Plain]:
    """A head's weights in a run, its masked cells, and those that are not numbers."""
    attention = run.attentions[kind]
    weights, masked = attention.head(layer, head), attention.head_mask(layer, head)
    drawn = cells.number_cells(np.where(masked, np.nan, weights), say("weight"), **scale)
    return [drawn, *cells.hidden(masked & ~np.isnan(weights), colours), *cells.broken(weights, colours)]


def labels_of(run: Trace, kind: Kind) -> tuple[list[str], list[str]]:
    """The labels of rows and columns: `3·l→o` and `3·l`."""
    rows, written, columns = words_of(run, kind)
    return numbered(rows, written), numbered(columns)


def words_of(run: Trace, kind: Kind) -> tuple[list[str], list[str], list[str]]:
    """Tokens of the rows, what was written from them where that is known, and tokens of the columns, as they are drawn: cut
    where they would leave no room for the map."""

    def words(tokens: Sequence[str]) -> list[str]:
        return [token_label(token, _LONGEST_WORD) for token in tokens]

    written = () if kind == "encoder" else run.output_tokens
    attention = run.attentions[kind]
    pairs = zip(attention.queries, words(written), strict=False)
    return words(attention.queries), ["" if read == PAD else out for read, out in pairs], words(attention.keys)


def numbered(words: Sequence[str], written: Sequence[str] = (), places: Sequence[int] = ()) -> list[str]:
    """Labels `3·l` and `3·l→o`; words that are matched at different places have both places."""
    arrows = [f"→{out}" if out else "" for out in written] or [""] * len(words)
    labels = map(place_label, places or range(len(words)), words)
    return [f"{label}{arrow}" for label, arrow in zip(labels, arrows, strict=True)]


@dataclass
class Panel:
    """One map.

    Attributes:
        title: markup.
        rows: the labels of its rows.
        columns: the labels of its columns.
        traces: what is drawn.
        framed: cells that have a frame: the first column and row, and the last ones.
        bar: colours that a bar above it names: of which axis of colours, from where to where, and in which words.
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    traces: list[Plain]
    framed: tuple[int, int, int, int] | None = None
    bar: tuple[str, tuple[float, float], Sequence[str]] | None = None


def of_a_kind(panels: Sequence[Panel], trace: Trace, kind: Kind, style: Style) -> PlainFigure:
    """Maps side by side whose columns are the keys of a run."""
    return side_by_side(panels, style, cells.key_title(trace.attentions[kind].keys, kind, axis_noun(trace)))


def side_by_side(panels: Sequence[Panel], style: Style, across: str = "", width: int = PAGE_WIDTH) -> PlainFigure:
    """Up to three maps in a line, or all below each other, as large as their labels allow.

    Args:
        panels: the maps.
        style: theme and size.
        across: what columns are.
        width: about as many pixels as the page gives to the figure, but for a narrow one.
    """
    colours, size = style.colours, style.size - 1
    columns, page = (1, _PHONE_WIDTH) if style.narrow else (min(3, len(panels)), width)
    lines, inner = -(-len(panels) // columns), max(180, min(27 * max(len(panel_map.rows) for panel_map in panels), 430))

    def letters(room: float) -> int:
        """Their size where a cell has so many pixels."""
        return int(min(size, max(_SMALLEST, room - 1)))

    def axis(names: Sequence[str], room: float, title: str = "", **more: Any) -> dict[str, Any]:
        """Letters are smaller where a cell has little room, and some are left out."""
        every = max(1, -(-int(letters(room) + 1) // max(1, int(room))))
        return named_axis(colours, letters(room), names, title, every=every, automargin=False, **edge(colours), **more)

    longest = [max(map(_length, panel_map.columns)) for panel_map in panels]
    # Column labels stand upright where they would not fit side by side.
    upright = [
        n * 0.6 * size > (_PHONE_WIDTH - 60) / max(1, len(panel_map.columns))
        for n, panel_map in zip(longest, panels, strict=True)
    ]
    heights = [
        0.52 * letters(page / columns / len(panel_map.columns)) * n
        for panel_map, n, turned in zip(panels, longest, upright, strict=True)
        if turned
    ]
    height = _HEAD + inner + 10 + round(max(heights, default=size)) + (round(1.3 * size) + 8 if across else 0)
    layout: dict[str, Any] = {**base_layout(colours, size), "height": height * lines, "annotations": [], "shapes": []}
    layout["margin"] = {"l": 0, "r": 4, "t": 0, "b": 0}
    drawn: list[Plain] = []
    for place, panel_map in enumerate(panels):
        line, column = divmod(place, columns)
        number, begins = place + 1, column / columns
        left = begins + min((10 + 0.56 * size * max(map(_length, panel_map.rows))) / page, 0.5 / columns)
        right = (column + 1) / columns - (0.012 if column < columns - 1 else 0)
        top, bottom = (1 - (line * height + _HEAD + below) / (height * lines) for below in (0, inner))
        turned = {"tickangle": -90} if upright[place] else {}
        keys = axis(panel_map.columns, (right - left) * page / len(panel_map.columns), across, **turned)
        layout |= panel_axes(
            number, keys, axis(panel_map.rows, inner / len(panel_map.rows), down=True), (left, right), (bottom, top)
        )
        # Above the row labels: above the map is the colour bar, and no room for both where labels are long.
        layout["annotations"].append(words_at(f"<b>{panel_map.title}</b>", begins, top, size + 2, colours.ink, yshift=6))
        if panel_map.bar is not None:
            name, ends, words = panel_map.bar
            signed = ends[0] < 0
            # Half of the last word of a signed bar stands outside of it.
            bar: dict[str, Any] = {"x": right - (2 * size / page if signed else 0), "y": top, "outlinewidth": int(signed)}
            bar["len"] = (0.42 if signed else 0.3) / columns
            layout[name] = colour_axis(colours, size, ends, words, signed=signed, lying=True, **bar)
        if panel_map.framed is not None:
            layout["shapes"].append(frame(*panel_map.framed, colours.ink, 2, number))
        drawn += panel(number, panel_map.traces)
    return PlainFigure(drawn, layout)


def _length(label: str) -> int:
    """Counts the signs that are seen: an escaped one is one."""
    return len(html.unescape(label))
