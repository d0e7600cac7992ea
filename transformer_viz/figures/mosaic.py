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

_CAPTION_SHARE = 0.17
"""Height of a tile's caption, as a share of the tile."""
_QUIET = {"showscale": False, "hoverinfo": "none", "hoverongaps": False}


def mosaic(
    trace: Trace,
    kind: Kind,
    focus: tuple[int, Head] | None = None,
    *,
    theme: ThemeName = "light",
    large: bool = False,
    height: int | None = None,
) -> go.Figure:
    """Every layer and head of a kind as small maps; range 0 to 1, masked cells grey.

    Args:
        trace: the run.
        kind: `encoder`, `decoder` or `cross`.
        focus: layer and head to outline; `mean` and `max` outline the whole layer.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.
        height: in pixels; by default as many rows of tiles as layers need.
    """
    weights = trace.attentions(kind)
    assert weights is not None, f"the run has no {kind} attention"
    colours, size = theme_of(theme), 15 if large else 12
    grid = _Grid(*weights.shape)
    masked = np.broadcast_to(trace.masks[kind], weights.shape)
    drawn = grid.canvas(np.where(masked, np.float32(np.nan), weights))
    grey = grid.canvas(np.where(masked, np.float32(1), np.float32(np.nan)))
    return go.Figure(
        [
            go.Heatmap(z=drawn, zmin=0, zmax=1, colorscale=colours.scale, **_QUIET),
            go.Heatmap(z=grey, colorscale=flat(colours.masked), **_QUIET),
            grid.captions(colours, size, focus),
        ],
        {
            **base_layout(colours, size),
            "height": height or 28 + min(4, weights.shape[0]) * 98,
            "title": {
                "text": KIND_TITLES[kind],
                "font": {"size": size + 2, "color": colours.ink},
                "x": 0.5,
                "y": 0.985,
                "yanchor": "top",
            },
            "xaxis": _bare([-0.5, grid.width - 0.5]),
            "yaxis": _bare([grid.height - 0.5, -0.5 - grid.caption]),
            "shapes": grid.outlines(colours, focus),
            "meta": {"kind": kind, **grid.meta()},
            "margin": {"t": 22, "b": 2, "l": 2, "r": 2},
        },
    )


class _Grid:
    """Where each tile stands on the canvas, in cells."""

    def __init__(self, n_layers: int, n_heads: int, n_queries: int, n_keys: int) -> None:
        self.n_layers, self.n_heads, self.n_queries, self.n_keys = n_layers, n_heads, n_queries, n_keys
        self.gap = max(1, round(n_keys * 0.06))
        self.caption = max(1, round(n_queries * _CAPTION_SHARE))
        self.pitch_x, self.pitch_y = n_keys + self.gap, n_queries + self.caption
        self.width = n_heads * self.pitch_x - self.gap
        self.height = n_layers * self.pitch_y - self.caption
        self.places = [(layer, head) for layer in range(n_layers) for head in range(n_heads)]

    def canvas(self, tiles: np.ndarray) -> np.ndarray:
        """(layer, head, query, key) -> one matrix with NaN between the tiles."""
        padded = np.pad(tiles, ((0, 0), (0, 0), (0, self.caption), (0, self.gap)), constant_values=np.nan)
        whole = padded.transpose(0, 2, 1, 3).reshape(self.n_layers * self.pitch_y, self.n_heads * self.pitch_x)
        return np.ascontiguousarray(whole[: self.height, : self.width], dtype=np.float32)

    def captions(self, theme: Theme, size: int, focus: tuple[int, Head] | None) -> go.Scatter:
        """`layer·head` above each tile, counted from 1."""
        return go.Scatter(
            x=[head * self.pitch_x + (self.n_keys - 1) / 2 for _, head in self.places],
            y=[layer * self.pitch_y - 0.5 - self.caption / 2 for layer, _ in self.places],
            text=[f"{layer + 1}·{head + 1}" for layer, head in self.places],
            mode="text",
            textfont={
                "size": size,
                "color": [theme.accent if self._is_in(place, focus) else theme.muted for place in self.places],
            },
            hoverinfo="skip",
            cliponaxis=False,
        )

    def outlines(self, theme: Theme, focus: tuple[int, Head] | None) -> list[dict[str, Any]]:
        """A thin frame around each tile, so that an empty corner is still part of it; a strong one around the focus."""
        frames = [self._path(self.places, theme.grid, 1)]
        chosen = [place for place in self.places if self._is_in(place, focus)]
        return [*frames, self._path(chosen, theme.accent, 2.5)] if chosen else frames

    def meta(self) -> dict[str, int]:
        """The grid, for turning a click into layer and head."""
        return {"layers": self.n_layers, "heads": self.n_heads, "pitch_x": self.pitch_x, "pitch_y": self.pitch_y}

    def _is_in(self, place: tuple[int, int], focus: tuple[int, Head] | None) -> bool:
        return focus is not None and place[0] == focus[0] and (focus[1] == place[1] or isinstance(focus[1], str))

    def _path(self, places: list[tuple[int, int]], colour: str, width: float) -> dict[str, Any]:
        """One shape for all tiles: a shape of its own for each costs the browser more than the map."""
        rectangles = []
        for layer, head in places:
            left, top = head * self.pitch_x - 0.5, layer * self.pitch_y - 0.5
            right, bottom = left + self.n_keys, top + self.n_queries
            rectangles.append(f"M{left},{top}L{right},{top}L{right},{bottom}L{left},{bottom}Z")
        return {"type": "path", "path": "".join(rectangles), "line": {"color": colour, "width": width}}


def _bare(edges: list[float]) -> dict[str, Any]:
    return {"range": edges, "visible": False, "fixedrange": True}
