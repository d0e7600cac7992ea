"""Masks as matrices, each cell coloured by its reason: one, or all of a sentence or a batch side by side."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer_viz.addresses import AttentionAddress, find_map
from transformer_viz.analysis.mask_parts import MaskPart
from transformer_viz.analysis.word_pooling import kind_title
from transformer_viz.comparison.align import common
from transformer_viz.errors import OptionError
from transformer_viz.figures import cells
from transformer_viz.figures.figure_data import Plain, PlainFigure, heatmap, plotly_figure, scatter
from transformer_viz.figures.parts import legend, named_axis, panel, panel_axes, words_at
from transformer_viz.figures.theme import Style, Theme, ThemeName, base_layout, escape, token_labels
from transformer_viz.language import known, later, say
from transformer_viz.terms import REASON_WORDS, Kind, Reason
from transformer_viz.text_display import shorten
from transformer_viz.trace.hidden_answer import COVERED
from transformer_viz.trace.trace import Trace

_TITLE, _LEGEND, _LEGEND_LINE = 44, 34, 20
"""Pixels: above a panel for its title, above everything for the legend, and of each of its lines."""
_LONGEST_NAME = 120
_LABEL, _LEAST_APART = 9, 7
"""The least pixels between tick labels (smaller cells have a label only at some of them, and all in the hover), and of a cell
that is drawn apart from its neighbours."""
_SMALLEST = 0.55
"""The width of a cell of several panels on the smallest page that has them side by side, as a share of its height."""
_FIXED = {"yref": "paper", "yanchor": "bottom", "itemclick": False, "itemdoubleclick": False}
"""The settings of a legend whose entries cannot be clicked, since they name colours of cells."""
LOOKS: dict[int, tuple[str, str, str]] = {
    Reason.ALLOWED: ("#f4f7fa", "#1b222c", later("may look")),
    Reason.PADDING: ("#e0a458", "#d9a05b", later("may not look: <b>it is padding</b>")),
    Reason.FUTURE: ("#7b8fa6", "#5f7896", later("may not look: <b>it is in the future</b>")),
    Reason.BOTH: ("#8c5a2b", "#96683f", later("may not look: <b>it is padding, and in the future</b>")),
    Reason.EDITED: ("#b5488a", "#c56aa2", later("may not look: <b>an edit or a mistake masks it</b>")),
    Reason.UNKNOWN: ("#9aa0a6", "#7d838a", later("may not look: <b>a mask takes it away, why was not recorded</b>")),
    Reason.WINDOW: ("#4f9d8f", "#4a9186", later("may not look: <b>it is outside the window of this layer</b>")),
}
"""The colours of each reason in the light and in the dark theme, and the words of the hover."""
_N_CODES = max(LOOKS) + 1
_BANDS = [max(code for code in LOOKS if code <= number) for number in range(_N_CODES)]
"""The reason that a number has the colour of: those between the reasons, which no mask holds, that of the one below."""


@plotly_figure
def mask(
    trace: Trace,
    head: str | AttentionAddress,
    *,
    height: int = 330,
    before: np.ndarray | None = None,
    style: Style = Style(),
) -> PlainFigure:
    """Draws the mask in force for a kind: rows are queries, columns are keys, colours are reasons.

    Args:
        trace: the run.
        head: a kind of attention, such as `cross`. A head of it, such as `cross.2.3`, matters where an edit made heads
            differ; by default it is the first.
        height: in pixels.
        before: bool (query, key), the mask of another run; cells that differ from it get a frame.
        style: theme and size.
    """
    kind, layer, number = find_map(head, trace.grid)
    matrix = trace.attentions[kind].head_reasons(layer, number)
    frames = []
    if before is not None:
        # What only one of the two has does not count.
        now, then = common(matrix > 0, before)
        x, y = cells.hatch_outline(now != then)
        line = {"width": 2, "color": style.colours.accent}
        frames = [scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False)]
    title = say(
        "{trace}: {count} of {size} cells masked",
        trace=kind_title(trace, kind, in_full=False),
        count=(matrix > 0).sum(),
        size=matrix.size,
    )
    drawn = [reason_cells(matrix, style.theme), *frames, *reason_legend([0, *cells.codes_in(matrix)], style.theme)]
    return PlainFigure(drawn, mask_layout(trace, kind, title, style, height))


def mask_layout(trace: Trace, kind: Kind, title: str, style: Style, height: int = 330) -> dict[str, Any]:
    """The layout of `mask`."""
    colours, size, attention = style.colours, style.size - 2, trace.attentions[kind]
    labels = token_labels(attention.keys), token_labels(attention.queries)
    columns, rows = cells.token_axes(trace, kind, colours, size, labels, upright=True)
    return {
        **base_layout(colours, size + 1),
        "showlegend": True,
        "title": {
            "text": title,
            "font": {"size": size + 3},
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 2},
        },
        "xaxis": columns,
        "yaxis": rows,
        "legend": legend(size + 1, **_FIXED),
        "height": height,
        "margin": {"t": 84, "l": 8, "r": 8, "b": 8},
    }


def reason_cells(reasons: np.ndarray, theme: ThemeName, gap: int = 1) -> Plain:
    """One heatmap of reasons (query, key); the hover says each cell in words, and the axes name its query and key."""
    words = np.full(_N_CODES, "", object)
    words[list(LOOKS)] = [say(look[2]) for look in LOOKS.values()]
    return heatmap(
        z=reasons.astype(np.uint8),
        zmin=-0.5,
        zmax=_N_CODES - 0.5,
        # Each code has a flat band.
        colorscale=[
            [(number + edge) / _N_CODES, LOOKS[code][theme == "dark"]] for number, code in enumerate(_BANDS) for edge in (0, 1)
        ],
        showscale=False,
        xgap=gap,
        ygap=gap,
        # An array, which Plotly does not look through cell by cell.
        text=words[reasons],
        hovertemplate=say("query %{{y}}<br>key %{{x}}<br>%{{text}}<extra></extra>"),
    )


def reason_legend(codes: Sequence[int], theme: ThemeName) -> list[Plain]:
    """An entry for each reason; the points themselves are nowhere."""
    look: dict[str, Any] = {"symbol": "square", "size": 12, "line": {"width": 1, "color": "#8a94a0"}}
    return [
        scatter(
            x=[None],
            y=[None],
            mode="markers",
            name=say(REASON_WORDS[code]),
            showlegend=True,
            marker={**look, "color": LOOKS[code][theme == "dark"]},
            hoverinfo="skip",
        )
        for code in codes
    ]


@plotly_figure
def mask_grid(
    sentences: Sequence[Sequence[MaskPart]], names: Sequence[str], *, columns: int = 5, style: Style = Style()
) -> PlainFigure:
    """Draws the masks of one sentence or of a whole batch in one figure.

    Args:
        sentences: the matrices of each sentence, from `analysis.mask_parts`.
        names: what to call each sentence; drawn above its matrices.
        columns: matrices side by side; in a narrow figure there is one.
        style: theme and size of cells and letters.

    Raises:
        OptionError: there is no sentence, or not one name for each.
    """
    if not sentences or len(sentences) != len(names):
        raise OptionError(
            f"{len(sentences)} sentences and {len(names)} names are given; give at least one, and a name for each"
        )
    colours, size, large, columns = style.colours, style.size - 2, style.large, 1 if style.narrow else columns
    gap = 6 * size  # below a panel, for its tick labels
    # What stands side by side; the first row of each sentence has its name.
    rows = [
        (name if start == 0 else "", list(parts[start : start + columns]))
        for name, parts in zip(names, sentences, strict=True)
        for start in range(0, len(parts), columns)
    ]
    # Square cells where the page is 1400 pixels wide, within limits.
    room, largest, highest = 1400 / columns * 0.76 if columns > 1 else 300, 34 if large else 22, 520 if large else 300
    heights = [
        max(int(np.clip(min(largest, room / max(1, len(part.keys))) * len(part.queries), 70, highest)) for part in parts)
        for _, parts in rows
    ]
    parts_in_sight = [part for parts in sentences for part in parts if not part.is_covered]
    codes = sorted({int(code) for part in parts_in_sight for code in (0, *np.unique(part.reasons))})
    # On a phone two reasons stand side by side.
    above = max(_LEGEND, _LEGEND_LINE * (1 + math.ceil(len(codes) / 2))) if style.narrow else _LEGEND
    total = above + sum(height + _TITLE + gap + (18 if name else 0) for height, (name, _) in zip(heights, rows, strict=True))
    layout: dict[str, Any] = {**base_layout(colours, size), "height": total, "showlegend": True}
    layout |= {
        "margin": {"t": above, "l": 4 if columns == 1 else 24, "r": 8, "b": 4},
        "annotations": [],
        "legend": legend(size + 1, **_FIXED),
    }
    drawn = []
    inner, top = total - above - 4, 0.0
    for (name, parts), height in zip(rows, heights, strict=True):
        if name:
            title = f"<b>{escape(shorten(name, _LONGEST_NAME))}</b>"
            layout["annotations"].append(words_at(title, 0, 1 - top / inner, size + 2, colours.ink, yanchor="top"))
            top += 18
        for column, part in enumerate(parts):
            # The labels of the rows stand before the panel.
            left, right = column / columns + (0.05 if columns > 1 else 0.2), (column + 1) / columns - 0.012
            bottom, cell, number = 1 - (top + _TITLE + height) / inner, height / len(part.queries), len(drawn) + 1
            counted = (
                say(COVERED)
                if part.is_covered
                else say("{count} of {size} cells", count=(part.reasons > 0).sum(), size=part.reasons.size)
            )
            title = f"{known(part.title)}<br>{counted}"
            at = left, 1 - (top + 4) / inner
            layout["annotations"].append(words_at(title, *at, size + 1, colours.muted, yanchor="top"))
            shown = reason_cells(part.reasons, style.theme, gap=int(cell >= _LEAST_APART))
            drawn += panel(number, [_covered(part, colours) if part.is_covered else shown])
            every = math.ceil(_LABEL / cell)
            looks: dict[str, Any] = {"every": every, "automargin": False}
            wide = cell * (_SMALLEST if columns > 1 else 1)
            looks_across: dict[str, Any] = {**looks, "every": math.ceil(_LABEL / wide)}
            across = named_axis(colours, size - 1, token_labels(part.keys), tickangle=-90, **looks_across)
            down = named_axis(colours, size - 1, token_labels(part.queries), down=True, **looks)
            layout |= panel_axes(number, across, down, (left, right), (max(0.0, bottom), bottom + height / inner))
        top += height + _TITLE + gap
    return PlainFigure([*drawn, *reason_legend(codes, style.theme)], layout)


def _covered(part: MaskPart, theme: Theme) -> Plain:
    return cells.covered_trace(np.ones(len(part.queries), bool), len(part.keys), theme)
