"""All heads of one kind at a glance: layers as rows, heads as columns, ONE heatmap for all tiles.

A subplot a head would cost the browser a second for 48 of them; one trace with gaps costs what one map
costs. `layout.meta` holds the tile grid, from which a click at (x, y) is turned into layer and head.

Three levels of detail. Small maps travel as they are, float32, with a second trace for masked cells. Larger
ones as one byte a cell, in which masked and empty cells have codes of their own: a second trace would double
the bytes. Maps with more cells than the picture has pixels are thinned out, each cell the strongest of a block,
and the title says so: the browser would draw every second cell and leave the others out.
"""

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict, Unpack

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.attributed import full, heads_of, is_of_heads
from transformer_viz.analysis.head_order import ordered
from transformer_viz.analysis.words import kind_title
from transformer_viz.figures import shades
from transformer_viz.figures.plain import Plain, PlainFigure, heatmap, scatter
from transformer_viz.figures.shades import Scale
from transformer_viz.figures.theme import Theme, ThemeName, base_layout, flat, theme_of
from transformer_viz.terms import Head, Kind, head_label
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace

_CAPTION_SHARE = 0.17
"""Height of a tile's caption, as a share of the tile."""
_CAPTIONS_ACROSS, _SMALLEST_CAPTION = 112, 6
"""So many pixels of letters' size side by side have room for their captions: 12 for 9 heads, 7 for 16."""
_QUIET = {"showscale": False, "hoverinfo": "none", "hoverongaps": False}
EXACT_UP_TO, _EXACT_CELLS = 32, 20_000
"""Tokens, and cells of all heads together, up to which the weights travel as float32; beyond, in 250 shades."""
_LONGEST_SIDE, _SHORTEST_SIDE = 128, 16
_TITLE_BELOW = 6.3
"""Pixels above the title."""
_LEAST_OF_A_ROW = 32
"""Pixels of a row of tiles of all layers of a deep model; a page of some layers asks for more."""
_CELLS_ACROSS, _CELLS_DOWN = 512, 384
"""About as many cells as a mosaic has pixels where three stand side by side on a page 1440 wide."""
_EMPTY, _MASKED, _FIRST_SHADE, _LAST_SHADE = 0, 2, 5, 255
"""Codes of a byte: 5 to 255 is a weight from 0 to 1, and two that are none. The common codes are the low ones:
Plotly writes each `/` of base64, which high bytes are full of, as six letters."""


def mosaic(
    trace: Trace,
    kind: Kind,
    focus: tuple[int, Head] | None = None,
    *,
    heads: Sequence[tuple[int, int]] | None = None,
    columns: int | None = None,
    scale: Scale = "fixed",
    theme: ThemeName = "light",
    large: bool = False,
    height: int | None = None,
    measure: Attribution | None = None,
) -> go.Figure:
    """Every layer and head of a kind as small maps; range 0 to 1, masked cells grey.

    Args:
        trace: the run.
        kind: `encoder`, `decoder` or `cross`.
        focus: layer and head to outline; `mean` and `max` outline the whole layer.
        heads: layer and head of those that are drawn, in their order; by default all, by layers.
        columns: how many stand side by side; by default as many as a layer has.
        scale: what has the strongest colour: `fixed` is a weight of 1, `head` each head's own largest, `log` is 1 on a
            logarithmic scale that begins at 0.0001.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.
        height: in pixels; by default as many rows of tiles as layers need.
        measure: of `tv.attribute`; of this kind, and with a number for each head, it takes the place of the weights.

    `layout.meta["block"]` says how many queries and keys one cell stands for.
    """
    looks: MosaicLooks = {"heads": heads, "columns": columns, "scale": scale, "theme": theme, "large": large, "height": height}
    looks["measure"] = measure
    return plain_mosaic(trace, kind, focus, **looks).to_plotly()


class MosaicLooks(TypedDict):
    """What a mosaic has, and how it looks; see `mosaic`."""

    heads: NotRequired[Sequence[tuple[int, int]] | None]
    columns: NotRequired[int | None]
    scale: NotRequired[Scale]
    theme: ThemeName
    large: bool
    height: NotRequired[int | None]
    measure: NotRequired[Attribution | None]


def plain_mosaic(trace: Trace, kind: Kind, focus: tuple[int, Head] | None = None, **looks: Unpack[MosaicLooks]) -> PlainFigure:
    """The same as plain data."""
    weights, words = _numbers(trace, kind, looks.get("measure"))
    colours, size, scale = theme_of(looks["theme"]), 15 if looks["large"] else 12, looks.get("scale", "fixed")
    masked = np.broadcast_to(trace.attentions[kind].mask, weights.shape)
    tiles, columns = looks.get("heads"), looks.get("columns")
    if tiles is not None or columns is not None:
        tiles = tiles or ordered(trace, kind)
        weights, masked = (_chosen(trace, kind, of_all, tiles, columns) for of_all in (weights, masked))
    weights = shades.scaled(weights.astype(np.float32, copy=False), masked, scale)
    blocks = block_sizes(weights.shape)
    if blocks != (1, 1):
        weights, masked = _thinned(weights, masked, blocks)
    grid = Grid(trace.attentions[kind].layers, *weights.shape[1:], tiles=tiles)
    title = kind_title(trace, kind, in_full=False) + words + shades.TITLES[scale] + _thinned_words(blocks)
    return PlainFigure(
        [
            *_heatmaps(grid, weights, masked, colours, scale),
            *grid.outlines(colours, focus),
            grid.captions(colours, size, focus),
        ],
        {
            **grid.layout(title, colours, size, looks.get("height")),
            "meta": {"kind": kind, **grid.meta(), "block": list(blocks)},
            "margin": {"t": 22, "b": 2, "l": 2, "r": 2},
        },
    )


def _numbers(trace: Trace, kind: Kind, measure: Attribution | None) -> tuple[np.ndarray, str]:
    """(layer, head, query, key) from 0 to 1, and what they are, for behind the title: weights, unless a measure of heads takes
    their place, as shares of its largest number."""
    if measure is None or not is_of_heads(trace, measure):
        return trace.attentions[kind].weights, ""
    if measure.kind != kind:
        return trace.attentions[kind].weights, ": weights"
    largest = full(measure)
    return heads_of(trace, measure) / np.float32(largest), f": {measure.title}, 0 to {largest:.2g}"


def _chosen(trace: Trace, kind: Kind, of_all: np.ndarray, heads: Sequence[tuple[int, int]], columns: int | None) -> np.ndarray:
    """(layer, head, …) -> (row of tiles, column, …), in the order of `heads`; tiles that are missing in the last row are
    not masked, and no numbers."""
    width = columns or of_all.shape[1]
    found = [of_all[trace.attentions[kind].layer_index(layer), head] for layer, head in heads]
    empty = np.zeros_like(found[0]) if of_all.dtype == bool else np.full_like(found[0], np.nan)
    found += [empty] * (-len(found) % width)
    return np.stack(found).reshape(-1, width, *of_all.shape[2:])


def block_sizes(shape: tuple[int, ...]) -> tuple[int, int]:
    """How many queries and keys one cell stands for; 1 and 1 where every cell has a pixel."""
    n_layers, n_heads, n_queries, n_keys = shape
    most_queries = min(_LONGEST_SIDE, max(_SHORTEST_SIDE, _CELLS_DOWN // n_layers))
    most_keys = min(_LONGEST_SIDE, max(_SHORTEST_SIDE, _CELLS_ACROSS // n_heads))
    return -(-n_queries // most_queries), -(-n_keys // most_keys)


def _thinned(weights: np.ndarray, masked: np.ndarray, blocks: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """The strongest allowed weight of each block, and the blocks of which every cell is masked."""
    weights = np.where(masked, np.float32(0), weights)
    for axis, block in zip((2, 3), blocks, strict=True):
        starts = np.arange(0, weights.shape[axis], block)
        weights = np.fmax.reduceat(weights, starts, axis)
        masked = np.logical_and.reduceat(masked, starts, axis)
    return weights, masked


def _thinned_words(blocks: tuple[int, int]) -> str:
    return "" if blocks == (1, 1) else f", each cell the strongest of {blocks[0]} × {blocks[1]}"


def _heatmaps(grid: "Grid", weights: np.ndarray, masked: np.ndarray, colours: Theme, scale: Scale) -> list[Plain]:
    """Weights and masked cells: two exact traces for small maps, one of bytes for larger ones."""
    if max(weights.shape[2:]) <= EXACT_UP_TO and weights.size <= _EXACT_CELLS:
        drawn = grid.canvas(np.where(masked, np.float32(np.nan), weights), np.float32(np.nan))
        maps = [heatmap(z=drawn, zmin=0, zmax=1, colorscale=shades.stops(colours, scale), **_QUIET)]
        if masked.any():
            grey = grid.canvas(np.where(masked, np.float32(1), np.float32(np.nan)), np.float32(np.nan))
            maps.append(heatmap(z=grey, colorscale=flat(colours.masked), **_QUIET))
        return maps
    span = _LAST_SHADE - _FIRST_SHADE
    known: np.ndarray = np.clip(np.nan_to_num(weights, nan=0), 0, 1)
    found = np.rint(shades.share(known, scale) * span + _FIRST_SHADE).astype(np.uint8)
    codes = np.where(masked, np.uint8(_MASKED), np.where(np.isnan(weights), np.uint8(_EMPTY), found))
    return [heatmap(z=grid.canvas(codes, np.uint8(_EMPTY)), zmin=0, zmax=255, colorscale=_coded(colours), **_QUIET)]


def _coded(colours: Theme) -> list[list[Any]]:
    """A flat band for empty cells and one for masked ones, then the theme's scale."""
    edges = [0, (_EMPTY + _MASKED) / 2 / 255, (_MASKED + _FIRST_SHADE) / 2 / 255, _FIRST_SHADE / 255]
    flat_bands = [colours.paper, colours.masked, colours.scale[0]]
    bands = [[edge, colour] for i, colour in enumerate(flat_bands) for edge in edges[i : i + 2]]
    last = len(colours.scale) - 1
    return [*bands, *([edges[-1] + (1 - edges[-1]) * i / last, colours.scale[i]] for i in range(1, last + 1))]


class Grid:
    """Where each tile stands on the canvas, in cells."""

    def __init__(
        self,
        layers: tuple[int, ...],
        n_heads: int,
        n_queries: int,
        n_keys: int,
        tiles: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        self.n_heads, self.n_queries, self.n_keys = n_heads, n_queries, n_keys
        self.tiles = tiles or [(layer, head) for layer in layers for head in range(n_heads)]
        """Layer and head of each tile, row after row."""
        self.n_rows = -(-len(self.tiles) // n_heads)
        self.gap = max(1, round(n_keys * 0.06))
        self.caption = max(1, round(n_queries * _CAPTION_SHARE))
        self.pitch_x, self.pitch_y = n_keys + self.gap, n_queries + self.caption
        self.width = n_heads * self.pitch_x - self.gap
        self.height = self.n_rows * self.pitch_y - self.caption
        # Row of tiles, column.
        self.places = [divmod(place, n_heads) for place in range(len(self.tiles))]

    def canvas(self, tiles: np.ndarray, between: np.generic) -> np.ndarray:
        """(layer, head, query, key) -> one matrix with `between` between the tiles."""
        padded = np.pad(tiles, ((0, 0), (0, 0), (0, self.caption), (0, self.gap)), constant_values=between)
        whole = padded.transpose(0, 2, 1, 3).reshape(self.n_rows * self.pitch_y, self.n_heads * self.pitch_x)
        return np.ascontiguousarray(whole[: self.height, : self.width], dtype=tiles.dtype)

    def captions(self, theme: Theme, size: int, focus: tuple[int, Head] | None) -> Plain:
        """`L2 H3` above each tile."""
        return scatter(
            x=[head * self.pitch_x + (self.n_keys - 1) / 2 for _, head in self.places],
            y=[row * self.pitch_y - 0.5 - self.caption / 2 for row, _ in self.places],
            text=[head_label(*tile) for tile in self.tiles],
            mode="text",
            textfont={
                "size": max(_SMALLEST_CAPTION, min(size, _CAPTIONS_ACROSS // self.n_heads)),
                "color": [theme.accent if self._is_in(tile, focus) else theme.muted for tile in self.tiles],
            },
            hoverinfo="skip",
            cliponaxis=False,
        )

    def outlines(self, theme: Theme, focus: tuple[int, Head] | None) -> list[Plain]:
        """A thin frame around each tile, so that an empty corner is still part of it; a strong one around the focus.

        One line and not shapes, each of which would be an element of its own in the browser.
        """
        frames = [self._rectangles(self.places, theme.grid, 1)]
        chosen = [place for place, tile in zip(self.places, self.tiles, strict=True) if self._is_in(tile, focus)]
        return [*frames, self._rectangles(chosen, theme.accent, 2.5)] if chosen else frames

    def layout(self, title: str, theme: Theme, size: int, height: int | None) -> dict[str, Any]:
        """Title, height and axes of a figure that is this grid; without a height what the rows of tiles need."""
        height = height or 28 + max(min(4, self.n_rows) * 98, _LEAST_OF_A_ROW * self.n_rows)
        return {
            **base_layout(theme, size),
            "height": height,
            "title": {
                "text": title,
                "font": {"size": size + 2, "color": theme.ink},
                "x": 0.5,
                # As far from the edge in a tall figure.
                "y": max(0.985, 1 - _TITLE_BELOW / height),
                "yanchor": "top",
            },
            "xaxis": bare([-0.5, self.width - 0.5]),
            "yaxis": bare([self.height - 0.5, -0.5 - self.caption]),
        }

    def meta(self) -> dict[str, Any]:
        """The grid, for turning a click into layer and head: layer and head of each tile, row after row."""
        pitch = {"pitch_x": self.pitch_x, "pitch_y": self.pitch_y}
        return {"layers": self.n_rows, "tiles": [list(tile) for tile in self.tiles], "heads": self.n_heads, **pitch}

    @staticmethod
    def _is_in(tile: tuple[int, int], focus: tuple[int, Head] | None) -> bool:
        return focus is not None and tile[0] == focus[0] and (focus[1] == tile[1] or isinstance(focus[1], str))

    def _rectangles(self, places: list[tuple[int, int]], colour: str, width: float) -> Plain:
        """One line for all tiles, broken between two: a trace for each costs the browser more than the map."""
        x: list[float | None] = []
        y: list[float | None] = []
        for row, head in places:
            left, top = head * self.pitch_x - 0.5, row * self.pitch_y - 0.5
            right, bottom = left + self.n_keys, top + self.n_queries
            x += [left, right, right, left, left, None]
            y += [top, top, bottom, bottom, top, None]
        line = {"color": colour, "width": width}
        return scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", cliponaxis=False)


def bare(edges: list[float]) -> dict[str, Any]:
    """An axis that is not drawn and cannot be moved."""
    return {"range": edges, "visible": False, "fixedrange": True}
