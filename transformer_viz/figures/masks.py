"""A mask as a matrix, each cell coloured by its reason."""

import numpy as np
import plotly.graph_objects as go

from transformer_viz.figures import cells
from transformer_viz.figures.theme import ThemeName, base_layout, flat, theme_of
from transformer_viz.terms import KIND_TITLES, REASON_WORDS, Kind, Reason
from transformer_viz.trace.trace import Trace

_LIGHT = {
    Reason.ALLOWED: "#f4f7fa",
    Reason.PADDING: "#e0a458",
    Reason.FUTURE: "#7b8fa6",
    Reason.BOTH: "#8c5a2b",
    Reason.EDITED: "#b5488a",
}
_DARK = {
    Reason.ALLOWED: "#1b222c",
    Reason.PADDING: "#d9a05b",
    Reason.FUTURE: "#5f7896",
    Reason.BOTH: "#96683f",
    Reason.EDITED: "#c56aa2",
}


def mask(
    trace: Trace, kind: Kind, layer: int = 0, head: int = 0, *, theme: ThemeName = "light", height: int = 330
) -> go.Figure:
    """The mask in force for a kind: rows are queries, columns are keys, colours are reasons.

    Args:
        trace: the run.
        kind: `encoder`, `decoder` or `cross`.
        layer: from 0; matters only where an edit made layers differ.
        head: from 0; likewise.
        theme: `light` or `dark`.
        height: in pixels.
    """
    colours = theme_of(theme)
    reasons = trace.mask_reasons[kind]
    matrix = reasons if reasons.ndim == 2 else reasons[layer, head]
    codes = [0, *cells.codes_in(matrix)]
    return go.Figure(
        [*(_layer(matrix, code, theme) for code in codes), *(_legend_entry(code, theme) for code in codes)],
        {
            **base_layout(colours, 12),
            "showlegend": True,
            "title": {"text": f"{KIND_TITLES[kind]}: {(matrix > 0).sum()} of {matrix.size} cells masked", "font": {"size": 14}},
            "xaxis": cells.key_axis(trace.keys(kind), kind, colours, 11, tickangle=-90),
            "yaxis": cells.query_axis(cells.query_labels(trace.queries(kind), None), kind, colours, 11),
            "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "font": {"size": 12}},
            "height": height,
            "margin": {"t": 66, "l": 8, "r": 8, "b": 8},
        },
    )


def _colour(code: int, theme: ThemeName) -> str:
    return (_DARK if theme == "dark" else _LIGHT)[Reason(code)]


def _layer(matrix: np.ndarray, code: int, theme: ThemeName) -> go.Heatmap:
    may = "may look at" if code == 0 else "may not look at"
    why = "" if code == 0 else f":<br><b>{REASON_WORDS[code]}</b>"
    return go.Heatmap(
        z=cells.only(matrix, code),
        colorscale=flat(_colour(code, theme)),
        showscale=False,
        xgap=1,
        ygap=1,
        hoverongaps=False,
        hovertemplate=f"query %{{y}} {may} key %{{x}}{why}<extra></extra>",
    )


def _legend_entry(code: int, theme: ThemeName) -> go.Scatter:
    return go.Scatter(
        x=[None],
        y=[None],
        mode="markers",
        name=REASON_WORDS[code],
        marker={"symbol": "square", "size": 12, "color": _colour(code, theme), "line": {"width": 1, "color": "#8a94a0"}},
        hoverinfo="skip",
    )
