"""Every head as a tinted tile with its name and one grade: layers are rows, heads are columns, one panel a kind."""

from typing import Any

import numpy as np

from transformer_viz.analysis.grading import Grades, HeadGrade, Measures, alignment
from transformer_viz.analysis.measures import MEASURES
from transformer_viz.errors import OptionError, join_names
from transformer_viz.figures.figure_data import Plain, PlainFigure, plotly_figure
from transformer_viz.figures.parts import colour_axis, named_axis, panel, panel_axes, words_at
from transformer_viz.figures.theme import Style, base_layout, escape, flat_scale, ink_on
from transformer_viz.figures.tiles import Tile, head_cells, words_on
from transformer_viz.language import known, later, say
from transformer_viz.numbers_in_words import count_words, share_words
from transformer_viz.terms import head_title, kind_words
from transformer_viz.trace.trace import Trace

TINTS = {name: measure.title for name, measure in MEASURES.items() if measure.is_share} | {
    "score": later("how well the name fits")
}
"""The grades by which tiles can be tinted, with their titles."""
_WIDE, _NARROW = 1380, 350
"""Pixels that a page and a phone have for all panels."""
_NAME_NEEDS, _VALUE_NEEDS = 74, 34
"""The pixels of a tile from which it has room for a name, and for a value."""
_MOST_TILES = 16
"""Tiles side by side at which the panels still stand beside each other."""
_HEAD, _TITLE, _TICKS, _GAP = 24, 30, 26, 18
"""Pixels above all for what the colour means, above a panel for its title, below it for its numbers, between rows."""


@plotly_figure
def grades(run: Trace | Grades, tint: str = "mass", *, style: Style = Style()) -> PlainFigure:
    """Draws layers × heads of every kind, coloured from 0 to 1 by the grade that `tint` names.

    Args:
        run: a run, or its grades from `analysis.alignment`.
        tint: a measure that lies between 0 and 1, as `mass`, `hit_rate` and `entropy_share`, or `score`. A head without it is
            grey.
        style: theme and size; in a narrow figure one panel stands below the other.

    Raises:
        OptionError: another tint, or a run without attention.
    """
    if tint not in TINTS:
        raise OptionError(f"tint {tint!r} is not known; choose one of {join_names(TINTS)}")
    graded = run if isinstance(run, Grades) else alignment(run)
    if not graded.kinds:
        raise OptionError("This run has no attention to grade; give one with at least one kind of attention.")
    colours, size, narrow = style.colours, style.size, style.narrow
    kinds = list(graded.kinds)
    if narrow:  # what is tinted comes first, what is all grey last
        kinds.sort(key=lambda kind: all(getattr(head, tint) is None for head in graded.of(kind)))
    # Panels stand beside each other where their tiles are few and the page is wide.
    n_heads = {kind: 1 + max(head.head for head in graded.of(kind)) for kind in kinds}
    lines = [kinds] if not narrow and sum(n_heads.values()) <= _MOST_TILES else [[kind] for kind in kinds]
    layers = {kind: sorted({head.layer for head in graded.of(kind)}) for kind in kinds}
    n_columns, width, tile = len(lines[0]), _NARROW if narrow else _WIDE, 58 if style.large else 46
    heights = [max(len(layers[kind]) for kind in line) * tile for line in lines]
    height = _HEAD + sum(heights) + len(lines) * (_TITLE + _TICKS) + (len(lines) - 1) * _GAP
    above = words_at(say("colour, 0 to 1: {tints}", tints=say(TINTS[tint])), 0, 1, size, colours.muted, yanchor="top")
    layout: dict[str, Any] = {
        **base_layout(colours, size),
        "height": height,
        "margin": {"l": 0, "r": 0 if narrow else 48, "t": 0, "b": 0},
        "coloraxis": colour_axis(colours, size, (0, 1), ("0", "0.5", "1"), shows=not narrow, thickness=10, xpad=8, ypad=12),
        "annotations": [above],
    }
    drawn: list[Plain] = []
    top = float(_HEAD)
    for line, panel_height in zip(lines, heights, strict=True):
        for column, kind in enumerate(line):
            number, room = len(drawn) // 3 + 1, width / n_columns / n_heads[kind]
            values = np.full((len(layers[kind]), n_heads[kind]), np.nan, dtype=np.float32)
            hovers, tiles, texts = [[""] * n_heads[kind] for _ in layers[kind]], [], []
            for head in graded.of(kind):
                row, value = layers[kind].index(head.layer), getattr(head, tint)
                values[row, head.head] = np.nan if value is None else value
                hovers[row][head.head] = _hover(head)
                share = "" if value is None else share_words(value)
                tiles.append(Tile(row, head.head, share, ink_on(value, colours), escape(known(head.name))))
                # Name and value, or the value alone where there is little room, or nothing.
                named = "<br>".join(filter(None, (tiles[-1].name, share)))
                texts.append(named if room >= _NAME_NEEDS else share if room >= _VALUE_NEEDS else "")
            greys = np.where(np.isnan(values), np.float32(1), np.float32(np.nan))
            grey = head_cells(greys, hovers, "", gap=2, colorscale=flat_scale(colours.grid))
            drawn += panel(number, [head_cells(values, hovers, "", gap=2), grey, words_on(tiles, texts, size)])
            # The names of the layers stand before a panel.
            left, right = column / n_columns + 4.2 * size / width, (column + 1) / n_columns - 0.008
            bottom = top + _TITLE + len(layers[kind]) * tile
            looks: dict[str, Any] = {"tickfont": {"size": size - 1, "color": colours.muted}, "automargin": False}
            heads = [
                say("head {head}", head=head + 1) if n_heads[kind] <= 8 else str(head + 1) for head in range(n_heads[kind])
            ]
            across = named_axis(colours, size, heads, every=1 if n_heads[kind] <= 16 else 4, **looks)
            down = named_axis(
                colours, size, [say("layer {layer}", layer=layer + 1) for layer in layers[kind]], every=1, down=True, **looks
            )
            layout |= panel_axes(number, across, down, (left, right), (1 - bottom / height, 1 - (top + _TITLE) / height))
            missing = say(MEASURES[tint].missing) if tint in MEASURES else say("no row with a choice")
            is_grey = all(getattr(head, tint) is None for head in graded.of(kind))
            title = say("{attention}: {missing}", attention=kind_words(kind), missing=missing) if is_grey else kind_words(kind)
            layout["annotations"].append(words_at(title, left, 1 - top / height, size + 1, colours.ink, yanchor="top"))
        top += _TITLE + panel_height + _TICKS + _GAP
    return PlainFigure(drawn, layout)


def _hover(head: HeadGrade) -> str:
    """The hover of a head: its name, its rule, and each grade beside its baselines."""

    def of(measures: Measures, name: str) -> str:
        value = getattr(measures, name)
        return "–" if value is None else share_words(value)

    score = "" if head.score is None else f" {share_words(head.score)}"
    lines = [f"<b>{head_title(head.layer, head.head)}: {escape(known(head.name))}</b>{score}", escape(known(head.rule))]
    for name, measure in MEASURES.items():
        if (value := getattr(head, name)) is not None:
            fields = {"measure": say(measure.title), "value": share_words(value), "uniform": of(head.uniform, name)}
            lines.append(
                say("{measure} <b>{value}</b> (uniform {uniform})", **fields)
                if head.untrained is None
                else say(
                    "{measure} <b>{value}</b> (uniform {uniform}, untrained {untrained})",
                    untrained=of(head.untrained, name),
                    **fields,
                )
            )
    rows = count_words(head.n_rows, "row")
    lines.append(
        say("{rows} judged, {n} left out", rows=rows, n=head.n_left_out) if head.n_left_out else say("{rows} judged", rows=rows)
    )
    return "<br>".join(filter(None, lines))
