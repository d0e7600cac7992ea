"""The loss of each token of a padded batch; padded positions are drawn as left out."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.loss import Losses
from transformer_viz.figures import cells
from transformer_viz.figures.theme import Theme, ThemeName, base_layout, even, flat, shown, theme_of
from transformer_viz.trace.trace import Trace


def token_losses(
    traces: Sequence[Trace], found: Losses, *, theme: ThemeName = "light", large: bool = False, narrow: bool = False
) -> go.Figure:
    """Rows are sentences, columns are steps, colour is −log p; each cell names the token that should be written.

    Args:
        traces: teacher-forced runs with the same number of steps.
        found: from `analysis.losses` of the same runs.
        theme: `light` or `dark`.
        large: bigger letters.
        narrow: rows are steps and columns are sentences, for a phone, where a row of steps is too short for their tokens.
    """
    colours, size = theme_of(theme), 16 if large else 13
    n_steps, n_given = found.per_token.shape[1], traces[0].n_given
    drawn = [
        _counted(traces, found, colours, size, narrow=narrow),
        _padding(found, colours, narrow=narrow),
        cells.hatch_trace(_laid(~found.counted, narrow), colours),
    ]
    bare = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "automargin": True}
    steps = {
        **cells.ticks([str(n_given + t + 1) for t in range(n_steps)], -(-n_steps // cells.MOST_TICKS)),
        "title": {"text": "step", "standoff": 6},
        **bare,
    }
    sentences = {**cells.ticks([f"{i}: {_short(trace.source)}" for i, trace in enumerate(traces, 1)], 1), **bare}
    across, down = (sentences, steps) if narrow else (steps, sentences)
    n_across, n_down = (len(traces), n_steps) if narrow else (n_steps, len(traces))
    return go.Figure(
        [*drawn, _broken(found, colours, narrow=narrow)] if np.isnan(found.per_token).any() else drawn,
        {
            **base_layout(colours, size),
            "height": 100 + _row_height(large=large, narrow=narrow) * n_down,
            "margin": {"l": 8, "r": 8, "t": 8, "b": 56},
            "xaxis": {"range": [-0.5, n_across - 0.5], **across},
            "yaxis": {"range": [n_down - 0.5, -0.5], **down},
        },
    )


def _row_height(*, large: bool, narrow: bool) -> int:
    """Pixels. Beside a phone's rows there are many of them."""
    return (28 if large else 24) if narrow else (48 if large else 40)


def _laid(values: np.ndarray, narrow: bool) -> np.ndarray:
    """Values by sentence and step as they are drawn."""
    return values.T if narrow else values


def _where(narrow: bool) -> str:
    return "sentence %{x}, step %{y}" if narrow else "sentence %{y}, step %{x}"


def _counted(traces: Sequence[Trace], found: Losses, colours: Theme, size: int, *, narrow: bool) -> go.Heatmap:
    losses = np.where(found.counted, found.per_token, np.nan).astype(np.float32)
    tokens = np.array([[shown(step.token) for step in trace.steps[trace.n_given :]] for trace in traces])
    return go.Heatmap(
        z=_laid(losses, narrow),
        zmin=0,
        zmax=float(np.nanmax(losses, initial=1.0)),
        colorscale=even(colours.scale),
        text=_laid(tokens, narrow),
        texttemplate="%{text}",
        textfont={"size": size},
        hoverongaps=False,
        xgap=2,
        ygap=2,
        colorbar={"thickness": 10, "outlinewidth": 0, "title": {"text": "−log p"}, "tickfont": {"color": colours.muted}},
        hovertemplate=f"{_where(narrow)}: should write <b>%{{text}}</b><br>loss <b>%{{z:.4f}}</b><extra></extra>",
    )


def _padding(found: Losses, colours: Theme, *, narrow: bool) -> go.Heatmap:
    return go.Heatmap(
        z=_laid(np.where(found.counted, np.nan, np.float32(1)), narrow),
        customdata=_laid(found.per_token.astype(np.float32), narrow),
        colorscale=flat(colours.masked),
        showscale=False,
        hoverongaps=False,
        xgap=2,
        ygap=2,
        hovertemplate=f"{_where(narrow)}: padding, left out<br>its loss would be %{{customdata:.4f}}<extra></extra>",
    )


def _broken(found: Losses, colours: Theme, *, narrow: bool) -> go.Heatmap:
    return go.Heatmap(
        z=_laid(np.where(np.isnan(found.per_token), np.float32(1), np.nan), narrow),
        colorscale=flat(colours.broken),
        showscale=False,
        hoverongaps=False,
        hovertemplate=f"{_where(narrow)}: not a number (NaN)<extra></extra>",
    )


def _short(source: str, most: int = 14) -> str:
    return shown(source, most)
