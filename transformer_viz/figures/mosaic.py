"""All heads of one kind at a glance: layers as rows, heads as columns, ONE heatmap for all tiles.

A subplot a head would cost the browser a second for 48 of them; one trace with gaps costs what one map
costs. `layout.meta` holds the tile grid, from which a click at (x, y) is turned into layer and head.
"""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.heads import Head
from transformer_viz.figures.theme import Theme, ThemeName, base_layout, flat, theme_of
from transformer_viz.terms import KIND_TITLES, Kind
from transformer_viz.trace.trace import Trace

_TITLE_ROWS = 0.16
"""Height of a tile's caption, as a share of the tile."""


def mosaic(
    trace: Trace,
    kind: Kind,
    focus: tuple[int, Head] | None = None,
    *,
    theme: ThemeName = "light",
    large: bool = False,
    height: int = 260,
) -> go.Figure:
    """Every layer and head of a kind as small maps; range 0 to 1, masked cells grey.

    Args:
        trace: the run.
        kind: `encoder`, `decoder` or `cross`.
        focus: layer and head to outline; `mean` and `max` outline the whole layer.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.
        height: in pixels.
    """
    weights = trace.attentions(kind)
    assert weights is not None, f"the run has no {kind} attention"
    colours, size = theme_of(theme), 15 if large else 12
    grid = _Grid(*weights.shape)
    masked = np.broadcast_to(trace.masks[kind], weights.shape)
    figure = go.Figure(
        [
            go.Heatmap(
                z=grid.canvas(np.where(masked, np.float32(np.nan), weights)),
                zmin=0,
                zmax=1,
                colorscale=colours.scale,
                showscale=False,
                hoverinfo="none",
                hoverongaps=False,
            ),
            go.Heatmap(
                z=grid.canvas(np.where(masked, np.float32(1), np.float32(np.nan))),
                colorscale=flat(colours.masked),
                showscale=False,
                hoverinfo="none",
                hoverongaps=False,
            ),
        ]
    )
    figure.update_layout(
        **base_layout(colours, size),
        height=height,
        title={"text": KIND_TITLES[kind], "font": {"size": size + 2, "color": colours.ink}, "x": 0.5, "y": 0.985, "yanchor": "top"},
        xaxis=_bare([-0.5, grid.width - 0.5]),
        yaxis=_bare([grid.height - 0.5, -0.5 - grid.caption]),
        annotations=grid.captions(colours, size, focus),
        shapes=grid.outlines(colours, focus),
        meta={"kind": kind, **grid.meta()},
    )
    figure.update_layout(margin={"t": 26, "b": 2, "l": 2, "r": 2})
    return figure


class _Grid:
    """Where each tile stands on the canvas, in cells."""

    def __init__(self, n_layers: int, n_heads: int, n_queries: int, n_keys: int) -> None:
        self.n_layers, self.n_heads, self.n_queries, self.n_keys = n_layers, n_heads, n_queries, n_keys
        self.gap = max(1, round(n_keys * 0.06))
        self.caption = max(1, round(n_queries * _TITLE_ROWS))
        self.pitch_x, self.pitch_y = n_keys + self.gap, n_queries + self.caption
        self.width = n_heads * self.pitch_x - self.gap
        self.height = n_layers * self.pitch_y - self.caption

    def canvas(self, tiles: np.ndarray) -> np.ndarray:
        """(layer, head, query, key) -> one matrix with NaN between the tiles."""
        padded = np.pad(tiles, ((0, 0), (0, 0), (0, self.caption), (0, self.gap)), constant_values=np.nan)
        whole = padded.transpose(0, 2, 1, 3).reshape(self.n_layers * self.pitch_y, self.n_heads * self.pitch_x)
        return np.ascontiguousarray(whole[: self.height, : self.width], dtype=np.float32)

    def captions(self, theme: Theme, size: int, focus: tuple[int, Head] | None) -> list[dict[str, Any]]:
        return [
            {
                "x": head * self.pitch_x + (self.n_keys - 1) / 2,
                "y": layer * self.pitch_y - 0.5,
                "text": f"{layer + 1}·{head + 1}",
                "showarrow": False,
                "yanchor": "bottom",
                "yshift": -3,
                "font": {"size": size - 1, "color": theme.accent if focus == (layer, head) else theme.muted},
            }
            for layer in range(self.n_layers)
            for head in range(self.n_heads)
        ]

    def outlines(self, theme: Theme, focus: tuple[int, Head] | None) -> list[dict[str, Any]]:
        """A thin frame around each tile, so that an empty corner is still seen as part of it; a strong one around the focus."""
        frames = [
            self._frame(layer, head, {"color": theme.grid, "width": 1}) for layer in range(self.n_layers) for head in range(self.n_heads)
        ]
        if focus is None:
            return frames
        layer, head = focus
        heads = [head] if isinstance(head, int) else range(self.n_heads)
        return frames + [self._frame(layer, h, {"color": theme.accent, "width": 2.5}) for h in heads]

    def meta(self) -> dict[str, int]:
        return {
            "layers": self.n_layers,
            "heads": self.n_heads,
            "queries": self.n_queries,
            "keys": self.n_keys,
            "pitch_x": self.pitch_x,
            "pitch_y": self.pitch_y,
        }

    def _frame(self, layer: int, head: int, line: dict[str, Any]) -> dict[str, Any]:
        left, top = head * self.pitch_x - 0.5, layer * self.pitch_y - 0.5
        return {"type": "rect", "x0": left, "x1": left + self.n_keys, "y0": top, "y1": top + self.n_queries, "line": line}


def _bare(edges: list[float]) -> dict[str, Any]:
    return {"range": edges, "visible": False, "fixedrange": True}
