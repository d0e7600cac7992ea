"""Several maps of one head side by side, on shared rows: scores to weights, and before against after."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.align import common
from transformer_viz.analysis.softmax import Softmax
from transformer_viz.analysis.words import axis_noun
from transformer_viz.figures import cells
from transformer_viz.figures.margins import text_width
from transformer_viz.figures.plain import Plain, heatmap
from transformer_viz.figures.theme import Theme, ThemeName, base_layout, even, flat, theme_of
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.trace import Trace

_WIDTH, _NARROW = 1400, 350
"""Pixels of the page, on a desk and on a phone: what labels need is a share of it."""


def softmax_maps(
    trace: Trace,
    kind: Kind,
    layer: int,
    head: int,
    computed: Softmax,
    row: int,
    *,
    theme: ThemeName = "light",
    large: bool = False,
    columns: int = 3,
) -> go.Figure:
    """Scores before the mask, after it, and weights after the softmax; `row` has a frame.

    Args:
        trace: a run with scores (`record=("weights", "scores")`).
        kind: `encoder`, `decoder` or `cross`.
        layer: from 0.
        head: from 0.
        computed: from `analysis.softmax` of the same scores.
        row: the query that has a frame.
        theme: `light` or `dark`.
        large: bigger letters.
        columns: maps side by side; 1 on a phone.

    Raises:
        OptionError: the run has no scores of this kind, or no such head.
    """
    attention = trace.attentions[kind]
    scores, masked = attention.head_scores(layer, head), attention.head_mask(layer, head)
    colours = theme_of(theme)
    most = float(np.nanmax(np.abs(scores), initial=1e-6))
    score_scale = {"zmin": -most, "zmax": most, "colorscale": even(colours.diverging), "showscale": False}
    weight_scale = {"zmin": 0, "zmax": 1, "colorscale": even(colours.scale), "showscale": False}
    after = np.where(masked, np.nan, computed.filled)
    panels: list[tuple[str, list[Any]]] = [
        ("1. scores before the mask", [heat_map(scores, "score", score_scale)]),
        ("2. after the mask", [heat_map(after, "score", score_scale), *hidden(masked, colours)]),
        (
            "3. weights after the softmax",
            [heat_map(computed.weights, "weight", weight_scale), *_hidden_where_zero(masked, computed, colours)],
        ),
    ]
    return side_by_side((trace,) * 3, kind, panels, colours, 15 if large else 12, columns, row)


def before_and_after(
    before: Trace,
    after: Trace,
    kind: Kind,
    layer: int,
    head: Head,
    *,
    theme: ThemeName = "light",
    large: bool = False,
    columns: int = 3,
) -> go.Figure:
    """One head in two runs of the same source, and the signed difference where both have a cell.

    Args:
        before: the run as it was.
        after: the changed run; its tokens label the rows of its own map.
        kind: `encoder`, `decoder` or `cross`.
        layer: from 0.
        head: from 0, or `mean` or `max` over the heads of the layer.
        theme: `light` or `dark`.
        large: bigger letters.
        columns: maps side by side; 1 on a phone.

    Raises:
        OptionError: a run has no such kind, layer or head.
    """
    colours = theme_of(theme)
    weight_scale = {"zmin": 0, "zmax": 1, "colorscale": even(colours.scale), "showscale": False}
    signed = {"zmin": -1, "zmax": 1, "colorscale": even(colours.diverging), "showscale": False}
    panels = [
        (title, weight_map(trace, kind, layer, head, colours, weight_scale))
        for title, trace in (("before", before), ("after", after))
    ]
    first, second = common(*(trace.attentions[kind].head(layer, head) for trace in (before, after)))
    difference = second - first
    panels.append(("after − before", [heat_map(difference, "difference", signed, "%{z:+.4f}"), *broken(difference, colours)]))
    return side_by_side((before, after, before), kind, panels, colours, 15 if large else 12, columns, None)


def weight_map(run: Trace, kind: Kind, layer: int, head: Head, colours: Theme, scale: dict[str, Any]) -> list[Any]:
    """A head's weights in a run, its masked cells, and those that are not numbers."""
    weights, masked = run.attentions[kind].head(layer, head), run.attentions[kind].head_mask(layer, head)
    drawn = heat_map(np.where(masked, np.nan, weights), "weight", scale)
    return [drawn, *hidden(masked & ~np.isnan(weights), colours), *broken(weights, colours)]


def heat_map(values: np.ndarray, name: str, scale: dict[str, Any], number: str = "%{z:.4f}") -> Plain:
    """(query, key) values on a scale of their own; NaN draws nothing."""
    gap = int(max(values.shape) <= 40)
    hover = f"query %{{y}}<br>key %{{x}}<br>{name} <b>{number}</b><extra></extra>"
    return heatmap(z=values.astype(np.float32), hoverongaps=False, xgap=gap, ygap=gap, hovertemplate=hover, **scale)


def hidden(masked: np.ndarray, colours: Theme, words: str = "masked") -> list[Any]:
    """Masked cells, grey and hatched."""
    return [grey(masked, words, colours.masked), cells.hatch_trace(masked, colours)] if masked.any() else []


def _hidden_where_zero(masked: np.ndarray, computed: Softmax, colours: Theme) -> list[Any]:
    """Masked cells that really got nothing; with some fills a fully masked row has weights, or no numbers."""
    return [*hidden(masked & (computed.weights == 0), colours), *broken(computed.weights, colours)]


def broken(values: np.ndarray, colours: Theme) -> list[Any]:
    """Cells that are not numbers."""
    found = np.isnan(values)
    return [grey(found, "not a number (NaN)", colours.broken)] if found.any() else []


def grey(found: np.ndarray, words: str, colour: str) -> Plain:
    """Cells of one colour whose hover says `words`."""
    gap = int(max(found.shape) <= 40)
    return heatmap(
        z=np.where(found, np.float32(1), np.float32(np.nan)),
        colorscale=flat(colour),
        showscale=False,
        hoverongaps=False,
        xgap=gap,
        ygap=gap,
        hovertemplate=f"query %{{y}}<br>key %{{x}}<br><b>{words}</b><extra></extra>",
    )


def side_by_side(
    runs: Sequence[Trace],
    kind: Kind,
    panels: list[tuple[str, list[Any]]],
    colours: Theme,
    size: int,
    columns: int,
    row: int | None,
) -> go.Figure:
    """Panels from left to right, or below each other, each with its run's labels; the row, if any, has a frame in each."""
    n_rows = -(-len(panels) // columns)
    height = max(220, min(34 * max(len(run.attentions[kind].queries) for run in runs), 460)) + 110
    layout: dict[str, Any] = {**base_layout(colours, size), "height": height * n_rows, "annotations": [], "shapes": []}
    layout["margin"] = {"l": 4, "r": 8, "t": 30, "b": 8}
    # At least a share of 0.06; what is longer than a third of a panel is cut.
    names = [label for run in runs for label in _row_names(run, kind)]
    room = max(text_width(label, size - 1) for label in names) / (_WIDTH if columns > 1 else _NARROW)
    room = min(max(room, 0.06 if columns > 1 else 0.2), 0.36 / columns)
    drawn: list[Any] = []
    for place, ((title, traces), run) in enumerate(zip(panels, runs, strict=True)):
        line, column = divmod(place, columns)
        x = column / columns + room, (column + 1) / columns - 0.01
        y = 1 - (line + 1) / n_rows + 78 / (height * n_rows), 1 - line / n_rows - 4 / height
        layout |= _axes(run, kind, place + 1, x, y, colours, size - 1)
        words = {"text": f"<b>{title}</b>", "x": x[0], "y": y[1], "xref": "paper", "yref": "paper", "showarrow": False}
        layout["annotations"].append({**words, "xanchor": "left", "yanchor": "bottom", "font": {"size": size + 1}})
        for trace in traces:
            trace.update(xaxis=f"x{place + 1}", yaxis=f"y{place + 1}")
            drawn.append(trace)
        if row is not None:
            layout["shapes"].append(_row_frame(row, len(run.attentions[kind].keys), place + 1, colours))
    return go.Figure(drawn, layout)


def _row_names(run: Trace, kind: Kind) -> list[str]:
    """The labels of the rows."""
    return cells.query_labels(run.attentions[kind].queries, None if kind == "encoder" else run.output_tokens)


def _axes(
    run: Trace, kind: Kind, number: int, x: tuple[float, float], y: tuple[float, float], colours: Theme, size: int
) -> dict[str, Any]:
    """Keys and queries of the panel with this number; `x` and `y` are its place in shares of the figure."""
    names = _row_names(run, kind)
    keys = cells.key_axis(
        run.attentions[kind].keys, kind, colours, size, noun=axis_noun(run), domain=x, anchor=f"y{number}", automargin=False
    )
    queries = cells.query_axis(
        names,
        run.attentions[kind].queries,
        kind,
        colours,
        size,
        noun=axis_noun(run),
        domain=y,
        anchor=f"x{number}",
        automargin=False,
        title=None,
    )
    return {f"xaxis{number}": keys, f"yaxis{number}": queries}


def _row_frame(row: int, n_keys: int, number: int, colours: Theme) -> dict[str, Any]:
    sides = {"x0": -0.5, "x1": n_keys - 0.5, "y0": row - 0.5, "y1": row + 0.5}
    return {"type": "rect", "xref": f"x{number}", "yref": f"y{number}", "line": {"color": colours.accent, "width": 2}, **sides}
