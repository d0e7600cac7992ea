"""The loss of each token of a padded batch; padded positions are drawn as left out."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.loss import Losses
from transformer_viz.figures import cells
from transformer_viz.figures.theme import Theme, ThemeName, base_layout, even, flat, shown, theme_of
from transformer_viz.trace.trace import Trace


def token_losses(traces: Sequence[Trace], found: Losses, *, theme: ThemeName = "light", large: bool = False) -> go.Figure:
    """Rows are sentences, columns are steps, colour is −log p; each cell names the token that should be written.

    Args:
        traces: teacher-forced runs with the same number of steps.
        found: from `analysis.losses` of the same runs.
        theme: `light` or `dark`.
        large: bigger letters.
    """
    colours, size = theme_of(theme), 16 if large else 13
    n_steps, n_given = found.per_token.shape[1], traces[0].n_given
    drawn = [
        _counted(traces, found, colours, size),
        _padding(found, colours),
        cells.hatch_trace(~found.counted, colours),
    ]
    bare = {"showgrid": False, "zeroline": False, "fixedrange": True}
    return go.Figure(
        [*drawn, _broken(found, colours)] if np.isnan(found.per_token).any() else drawn,
        {
            **base_layout(colours, size),
            "height": 100 + (48 if large else 40) * len(traces),
            "margin": {"l": 8, "r": 8, "t": 8, "b": 56},
            "xaxis": {
                "range": [-0.5, n_steps - 0.5],
                **cells.ticks([str(n_given + t + 1) for t in range(n_steps)], -(-n_steps // cells.MOST_TICKS)),
                "title": {"text": "step", "standoff": 6},
                "ticks": "",
                **bare,
            },
            "yaxis": {
                "range": [len(traces) - 0.5, -0.5],
                **cells.ticks([f"{i}: {_short(trace.source)}" for i, trace in enumerate(traces, 1)], 1),
                **bare,
                "automargin": True,
                "ticks": "",
            },
        },
    )


def _counted(traces: Sequence[Trace], found: Losses, colours: Theme, size: int) -> go.Heatmap:
    losses = np.where(found.counted, found.per_token, np.nan).astype(np.float32)
    return go.Heatmap(
        z=losses,
        zmin=0,
        zmax=float(np.nanmax(losses, initial=1.0)),
        colorscale=even(colours.scale),
        text=[[shown(step.token) for step in trace.steps[trace.n_given :]] for trace in traces],
        texttemplate="%{text}",
        textfont={"size": size},
        hoverongaps=False,
        xgap=2,
        ygap=2,
        colorbar={"thickness": 10, "outlinewidth": 0, "title": {"text": "−log p"}, "tickfont": {"color": colours.muted}},
        hovertemplate="sentence %{y}, step %{x}: should write <b>%{text}</b><br>loss <b>%{z:.4f}</b><extra></extra>",
    )


def _padding(found: Losses, colours: Theme) -> go.Heatmap:
    return go.Heatmap(
        z=np.where(found.counted, np.nan, np.float32(1)),
        customdata=found.per_token.astype(np.float32),
        colorscale=flat(colours.masked),
        showscale=False,
        hoverongaps=False,
        xgap=2,
        ygap=2,
        hovertemplate="sentence %{y}, step %{x}: padding, left out<br>its loss would be %{customdata:.4f}<extra></extra>",
    )


def _broken(found: Losses, colours: Theme) -> go.Heatmap:
    return go.Heatmap(
        z=np.where(np.isnan(found.per_token), np.float32(1), np.nan),
        colorscale=flat(colours.broken),
        showscale=False,
        hoverongaps=False,
        hovertemplate="sentence %{y}, step %{x}: not a number (NaN)<extra></extra>",
    )


def _short(source: str, most: int = 14) -> str:
    return shown(source, most)
