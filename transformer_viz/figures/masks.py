"""Masks as matrices, each cell coloured by its reason: one, or all of a sentence or a batch side by side."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.mask_parts import MaskPart
from transformer_viz.analysis.words import axis_noun, kind_title
from transformer_viz.errors import OptionError, shortened
from transformer_viz.figures import cells, reasons
from transformer_viz.figures.theme import Theme, ThemeName, base_layout, escape, labels, theme_of
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace

_TITLE, _LEGEND = 26, 34
"""Pixels: above a panel for its title, above everything for the legend."""
_LONGEST_NAME = 120
_LABEL, _LEAST_APART = 9, 7
"""Pixels from one tick label to the next, of which smaller cells have one in several and the hover all; and of a cell that
stands apart from its neighbours."""


def mask(
    trace: Trace,
    kind: Kind,
    layer: int | None = None,
    head: int = 0,
    *,
    theme: ThemeName = "light",
    height: int = 330,
    before: np.ndarray | None = None,
) -> go.Figure:
    """The mask in force for a kind: rows are queries, columns are keys, colours are reasons.

    Args:
        trace: the run.
        kind: `encoder`, `decoder` or `cross`.
        layer: from 0; matters only where an edit made layers differ; by default the first that the run has.
        head: from 0; likewise.
        theme: `light` or `dark`.
        height: in pixels.
        before: bool (query, key), the mask of another run; cells that differ from it get a frame.
    """
    colours = theme_of(theme)
    attention = trace.attentions[kind]
    matrix = attention.head_reasons(attention.layers[0] if layer is None else layer, head)
    codes = [0, *cells.codes_in(matrix)]
    frames = [] if before is None else [_frames(_differs(matrix > 0, before), colours)]
    title = f"{kind_title(trace, kind, in_full=False)}: {(matrix > 0).sum()} of {matrix.size} cells masked"
    drawn = [reasons.cells(matrix, theme), *frames, *reasons.legend(codes, theme)]
    return go.Figure(drawn, mask_layout(trace, kind, title, colours, height))


def mask_layout(trace: Trace, kind: Kind, title: str, colours: Theme, height: int = 330) -> dict[str, Any]:
    """The layout of `mask`."""
    attention = trace.attentions[kind]
    return {
        **base_layout(colours, 12),
        "showlegend": True,
        "title": {
            "text": title,
            "font": {"size": 14},
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 2},
        },
        "xaxis": cells.key_axis(attention.keys, kind, colours, 11, noun=axis_noun(trace), tickangle=-90),
        "yaxis": cells.query_axis(
            cells.query_labels(attention.queries, None), attention.queries, kind, colours, 11, noun=axis_noun(trace)
        ),
        "legend": _legend(1.0),
        "height": height,
        "margin": {"t": 84, "l": 8, "r": 8, "b": 8},
    }


def mask_grid(
    sentences: Sequence[Sequence[MaskPart]],
    names: Sequence[str],
    *,
    columns: int = 5,
    theme: ThemeName = "light",
    large: bool = False,
) -> go.Figure:
    """The masks of one sentence or of a whole batch, as one figure.

    Args:
        sentences: the matrices of each sentence, from `analysis.mask_parts`.
        names: what to call each sentence; drawn above its matrices.
        columns: matrices side by side; 1 on a phone.
        theme: `light` or `dark`.
        large: bigger cells and letters.

    Raises:
        OptionError: there is no sentence, or not one name for each.
    """
    if not sentences or len(sentences) != len(names):
        raise OptionError(
            f"{len(sentences)} sentences and {len(names)} names are given; give at least one, and a name for each"
        )
    colours, size = theme_of(theme), 14 if large else 11
    gap = 6 * size  # below a panel, for its tick labels
    rows = _rows(sentences, names, columns)
    heights = [max(_height(part, columns, large) for part in parts) for _, parts in rows]
    total = _LEGEND + sum(height + _TITLE + gap + (18 if name else 0) for height, (name, _) in zip(heights, rows, strict=True))
    layout: dict[str, Any] = {**base_layout(colours, size), "height": total, "showlegend": True, "legend": _legend(1.0)}
    layout |= {"margin": {"t": _LEGEND, "l": 4, "r": 8, "b": 4}, "annotations": []}
    traces: list[Any] = []
    inner, top = total - _LEGEND - 4, 0.0
    for (name, parts), height in zip(rows, heights, strict=True):
        if name:
            title = f"<b>{escape(shortened(name, _LONGEST_NAME))}</b>"
            layout["annotations"].append(_words(title, 0, 1 - top / inner, size + 2, colours.ink))
            top += 18
        for column, part in enumerate(parts):
            left, right = _span(column, columns)
            bottom = 1 - (top + _TITLE + height) / inner
            cell = height / len(part.queries)
            number = len(traces) + 1
            title = f"{part.title} ({(part.reasons > 0).sum()} of {part.reasons.size})"
            layout["annotations"].append(_words(title, left, 1 - (top + 4) / inner, size + 1, colours.muted))
            traces.append(
                reasons.cells(part.reasons, theme, xaxis=f"x{number}", yaxis=f"y{number}", gap=int(cell >= _LEAST_APART))
            )
            layout |= _axes(number, part, (left, right), (max(0.0, bottom), bottom + height / inner), cell, colours, size - 1)
        top += height + _TITLE + gap
    codes = sorted({int(code) for parts in sentences for part in parts for code in np.unique(part.reasons)} | {0})
    return go.Figure([*traces, *reasons.legend(codes, theme)], layout)


def _rows(sentences: Sequence[Sequence[MaskPart]], names: Sequence[str], columns: int) -> list[tuple[str, list[MaskPart]]]:
    """What stands side by side; the first row of each sentence has its name."""
    return [
        (name if start == 0 else "", list(parts[start : start + columns]))
        for name, parts in zip(names, sentences, strict=True)
        for start in range(0, len(parts), columns)
    ]


def _differs(masked: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Where two masks differ; what only one of them has does not count."""
    n_queries, n_keys = min(len(masked), len(before)), min(masked.shape[1], before.shape[1])
    found = np.zeros_like(masked)
    found[:n_queries, :n_keys] = masked[:n_queries, :n_keys] != before[:n_queries, :n_keys]
    return found


def _frames(found: np.ndarray, colours: Theme) -> go.Scatter:
    x, y = cells.hatch_outline(found)
    return go.Scatter(x=x, y=y, mode="lines", line={"width": 2, "color": colours.accent}, hoverinfo="skip", showlegend=False)


def _height(part: MaskPart, columns: int, large: bool) -> int:
    """Pixels of a panel: square cells where the page is 1400 pixels wide, within limits."""
    room = 1400 / columns * 0.76 if columns > 1 else 300
    cell = min(34 if large else 22, room / max(1, len(part.keys)))
    return int(np.clip(cell * len(part.queries), 70, 520 if large else 300))


def _span(column: int, columns: int) -> tuple[float, float]:
    """Left and right of a panel, as shares of the width; the labels of the rows stand before it."""
    before = 0.05 if columns > 1 else 0.2
    width = 1 / columns
    return column * width + before, (column + 1) * width - 0.012


def _axes(
    number: int,
    part: MaskPart,
    x: tuple[float, float],
    y: tuple[float, float],
    cell: float,
    colours: Theme,
    size: int,
) -> dict[str, Any]:
    """`cell`: its height in pixels."""
    keys, queries, every = labels(part.keys), labels(part.queries), math.ceil(_LABEL / cell)
    shared: dict[str, Any] = {"automargin": False, "title": None}
    across: dict[str, Any] = {**cells.ticks(keys, every), "tickangle": -90, "domain": x, "anchor": f"y{number}", **shared}
    down: dict[str, Any] = {**cells.ticks(queries, every), "domain": y, "anchor": f"x{number}", **shared}
    return {
        f"xaxis{number}": cells.key_axis(part.keys, part.kind, colours, size, **across),
        f"yaxis{number}": cells.query_axis(queries, part.queries, part.kind, colours, size, **down),
    }


def _words(text: str, x: float, y: float, size: int, colour: str) -> dict[str, Any]:
    return {
        "text": text,
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "top",
        "showarrow": False,
        "font": {"size": size, "color": colour},
    }


def _legend(y: float) -> dict[str, Any]:
    return {
        "orientation": "h",
        "x": 0,
        "y": y,
        "yanchor": "bottom",
        "font": {"size": 12},
        "itemclick": False,
        "itemdoubleclick": False,
    }
