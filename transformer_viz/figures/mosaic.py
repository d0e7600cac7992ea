"""Draws all heads of one kind as small maps: layers as rows, heads as columns, all tiles in one heatmap.

A subplot for each head would take the browser a second for 48 heads; one trace with gaps takes as long as one map.
`layout.meta` holds the grid of tiles, with which a click at (x, y) becomes a layer and a head.

There are three levels of detail. Small maps are sent as float32, with a second trace for masked cells. Larger ones
are sent as one byte a cell, with codes for masked and empty cells, since a second trace would double the bytes. Maps
with more cells than the picture has pixels are thinned out: each cell is the strongest of a block, and the title says
so; otherwise the browser would draw every second cell and leave out the others.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from transformer_viz.analysis.head_order import ordered
from transformer_viz.analysis.query_rows import best_head
from transformer_viz.analysis.word_pooling import kind_title
from transformer_viz.figures import colour_scale
from transformer_viz.figures.cells import only
from transformer_viz.figures.colour_scale import Scale
from transformer_viz.figures.figure_data import Plain, PlainFigure, heatmap, plotly_figure, scatter
from transformer_viz.figures.parts import outline
from transformer_viz.figures.theme import Style, Theme, base_layout, flat_scale
from transformer_viz.language import enumerated, known, later, say
from transformer_viz.sentences.attribution_maps import full, heads_of, is_of_heads
from transformer_viz.terms import Head, Kind, head_label
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace

_CAPTION_SHARE = 0.17
"""Height of a tile's caption, as a share of the tile."""
_CAPTIONS_ACROSS, _SMALLEST_CAPTION = 112, 6
"""Captions fit where their font size times the tiles side by side is at most this: 12 pixels for 9 heads, 7 for 16."""
_QUIET = {"showscale": False, "hoverinfo": "none", "hoverongaps": False}
_EXACT_UP_TO, _EXACT_CELLS = 32, 20_000
"""The most tokens, and cells of all heads together, for which weights are sent as float32; beyond, in 250 shades."""
_LONGEST_SIDE, _SHORTEST_SIDE = 128, 16
_TITLE_BELOW = 6.3
"""Pixels above the title."""
_LEAST_OF_A_ROW = 32
"""Pixels of a row of tiles where a deep model's layers are all shown; a page with some of them asks for more."""
_CELLS_ACROSS, _CELLS_DOWN = 512, 384
"""About as many cells as a mosaic has pixels where three stand side by side on a page 1440 wide."""
EMPTY, _MASKED, _FIRST_SHADE, _LAST_SHADE = 0, 2, 5, 255
"""The codes of a byte: 5 to 255 are weights from 0 to 1, two more are empty and masked cells. Frequent codes are low, since
high bytes give many `/` in base64, each of which Plotly writes as six characters."""


@plotly_figure
def mosaic(
    trace: Trace,
    kind: Kind,
    focus: tuple[int, Head] | None = None,
    *,
    heads: Sequence[tuple[int, int]] | None = None,
    columns: int | None = None,
    scale: Scale = "fixed",
    height: int | None = None,
    measure: Attribution | None = None,
    style: Style = Style(),
) -> PlainFigure:
    """Draws a small map for every layer and head of a kind; colours go from 0 to 1, masked cells are grey. A star marks the
    head of cross-attention with the most weight on the right tokens, where these are known.

    Args:
        trace: the run.
        kind: `encoder`, `decoder` or `cross`.
        focus: layer and head to outline; `mean` and `max` outline the whole layer.
        heads: layer and head of those that are drawn, in their order; by default all, by layers.
        columns: how many stand side by side; by default as many as a layer has.
        scale: what has the strongest colour: `fixed` is a weight of 1, `head` each head's own largest, `log` is 1 on a
            logarithmic scale that begins at 0.0001.
        height: in pixels; by default as many rows of tiles as layers need.
        measure: a result of `tv.attribute`; if it is of this kind and has a number for each head, it replaces the weights.
        style: theme and size.

    `layout.meta["block"]` says how many queries and keys one cell stands for.
    """
    attention, colours = trace.attentions[kind], style.colours
    weights, words = attention.weights, "{attention}"
    if measure is not None and is_of_heads(trace, measure):
        words = later("{attention}: weights")
        if measure.kind == kind:  # as shares of its largest number
            largest = full(measure)
            weights, words = heads_of(trace, measure) / np.float32(largest), later("{attention}: {measure}, 0 to {largest}")
    masked = np.broadcast_to(attention.mask, weights.shape)
    if attention.is_covered.any():
        # Nothing is drawn of a row that is covered: grey would say that it is masked.
        hidden = attention.is_covered[:, None]
        weights, masked = np.where(hidden, np.float32(np.nan), weights), masked & ~hidden
    has_masks = masked.any()
    tiles = heads or ordered(trace, kind)
    places, n_across = [(attention.layer_index(layer), head) for layer, head in tiles], columns or weights.shape[1]
    blocks = block_sizes((-(-len(places) // n_across), n_across, *weights.shape[2:]))
    # One tile after the other, since all of a deep run at once do not stay in the processor's own memory.
    weights, masked = zip(*[_thinned(weights[place], masked[place], scale, blocks) for place in places], strict=True)
    # Tiles that are missing in the last row are not masked, and no numbers.
    weights, masked = in_rows(weights, n_across, np.nan), in_rows(masked, n_across, False)
    best = best_head(trace) if kind == "cross" else None
    best = None if best is None or not np.isfinite(best[2]) else best[:2]
    grid = HeadGrid(attention.layers, weights.shape[1:], tiles if heads or columns else None, focus, best)
    size = say("each cell the strongest of {rows} × {columns}", rows=blocks[0], columns=blocks[1])
    marks = enumerated([*([say("grey: masked")] if has_masks else []), *([say("★: best head")] if best else [])])
    name = kind_title(trace, kind, in_full=False)
    name = say("{attention} ({marks})", attention=name, marks=marks) if marks else name
    of = {} if measure is None else {"measure": say(measure.title), "largest": f"{full(measure):.2g}"}
    about = [say(words, attention=name, **of), known(colour_scale.TITLES[scale]), "" if blocks == (1, 1) else size]
    title = enumerated(filter(None, about))
    if is_exact(weights):
        looks = {"zmin": 0, "zmax": 1, "colorscale": colour_scale.stops(colours, scale)}
        maps = grid.exact_maps(np.where(masked, np.float32(np.nan), weights), looks, [(masked, colours.masked)])
    else:
        shares: np.ndarray = np.clip(np.nan_to_num(weights, nan=0), 0, 1)
        codes = np.rint(colour_scale.share(shares, scale) * (_LAST_SHADE - _FIRST_SHADE) + _FIRST_SHADE).astype(np.uint8)
        codes = np.where(masked, np.uint8(_MASKED), np.where(np.isnan(weights), np.uint8(EMPTY), codes))
        flat = {EMPTY: colours.paper, _MASKED: colours.masked}
        maps = [grid.coded_map(codes, coded_scale(flat, _FIRST_SHADE, _LAST_SHADE, colours.scale))]
    return grid.figure(maps, [], title, kind, blocks, style, height)


def _thinned(weights: np.ndarray, masked: np.ndarray, scale: Scale, blocks: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """One head on a colour scale, (query, key): of each block the strongest allowed weight, and whether all of it is masked."""
    weights = colour_scale.scaled(weights.astype(np.float32, copy=False), masked, scale)
    if blocks == (1, 1):
        return weights, masked
    weights = np.where(masked, np.float32(0), weights)
    for axis, block in enumerate(blocks):
        starts = np.arange(0, weights.shape[axis], block)
        weights = np.fmax.reduceat(weights, starts, axis)
        masked = np.logical_and.reduceat(masked, starts, axis)
    return weights, masked


def in_rows(tiles: Sequence[np.ndarray], width: int, missing: float) -> np.ndarray:
    """(…) of each tile -> (row of tiles, column, …), `width` side by side; the last row is filled up with `missing`."""
    filled = [*tiles, *[np.full_like(tiles[0], missing)] * (-len(tiles) % width)]
    return np.stack(filled).reshape(-1, width, *tiles[0].shape)


def block_sizes(shape: tuple[int, ...]) -> tuple[int, int]:
    """Counts the queries and keys that one cell stands for; 1 and 1 where every cell has a pixel."""
    n_layers, n_heads, n_queries, n_keys = shape
    most_queries = min(_LONGEST_SIDE, max(_SHORTEST_SIDE, _CELLS_DOWN // n_layers))
    most_keys = min(_LONGEST_SIDE, max(_SHORTEST_SIDE, _CELLS_ACROSS // n_heads))
    return -(-n_queries // most_queries), -(-n_keys // most_keys)


def is_exact(cells: np.ndarray) -> bool:
    """Tells whether (layer, head, query, key) numbers travel as they are."""
    return max(cells.shape[2:]) <= _EXACT_UP_TO and cells.size <= _EXACT_CELLS


def coded_scale(flat: Mapping[int, str], first: int, last: int, shades: Sequence[str]) -> list[list[Any]]:
    """The colours of the codes of a byte: a flat band around each of some, which are even, then shades between two others."""
    bands = [[max(0, code + side) / 255, colour] for code, colour in flat.items() for side in (-1, 1)]
    step = (last - first) / (len(shades) - 1)
    scale = [[(first + step * i) / 255, shade] for i, shade in enumerate(shades)]
    return [*bands, [bands[-1][0], shades[0]], *scale, [1, shades[-1]]]


class Grid:
    """Tiles of the same size with a caption above each, and where they stand on the canvas, in cells.

    Args:
        names: the captions, which are markup, row after row.
        columns: tiles side by side.
        shape: rows and columns of each tile.
        chosen: numbers of tiles that have a strong frame.
    """

    def __init__(self, names: Sequence[str], columns: int, shape: tuple[int, int], chosen: Collection[int] = ()) -> None:
        self.names, self.columns, self.chosen = names, columns, chosen
        self.n_rows, (self.n_queries, self.n_keys) = -(-len(names) // columns), shape
        self.gap = max(1, round(self.n_keys * 0.06))
        self.caption = max(1, round(self.n_queries * _CAPTION_SHARE))
        self.pitch_x, self.pitch_y = self.n_keys + self.gap, self.n_queries + self.caption
        self.width = columns * self.pitch_x - self.gap
        self.height = self.n_rows * self.pitch_y - self.caption
        # Row of tiles, column.
        self.places = [divmod(place, columns) for place in range(len(names))]

    def canvas(self, tiles: np.ndarray, between: float) -> np.ndarray:
        """(row, column, query, key) -> one matrix with `between` between the tiles."""
        padded = np.pad(tiles, ((0, 0), (0, 0), (0, self.caption), (0, self.gap)), constant_values=between)
        whole = padded.transpose(0, 2, 1, 3).reshape(self.n_rows * self.pitch_y, self.columns * self.pitch_x)
        return np.ascontiguousarray(whole[: self.height, : self.width], dtype=tiles.dtype)

    def exact_maps(
        self, numbers: np.ndarray, scale: dict[str, Any], others: Sequence[tuple[np.ndarray, str]] = ()
    ) -> list[Plain]:
        """(row, column, query, key) numbers on a scale, and cells of one colour each."""
        flats = [(only(here, True), {"colorscale": flat_scale(colour)}) for here, colour in others if here.any()]
        return [heatmap(z=self.canvas(cells, np.nan), **{**looks, **_QUIET}) for cells, looks in ((numbers, scale), *flats)]

    def coded_map(self, codes: np.ndarray, colours: list[list[Any]]) -> Plain:
        """Cells of one byte each."""
        return heatmap(z=self.canvas(codes, EMPTY), zmin=0, zmax=255, colorscale=colours, **_QUIET)

    def marks(self, theme: Theme, size: int) -> list[Plain]:
        """A thin frame around each tile, so that an empty corner is still part of it, a strong one around those that are
        chosen, and the captions."""

        def frames(places: Iterable[tuple[int, int]], colour: str, width: float) -> Plain:
            corners = ((column * self.pitch_x - 0.5, row * self.pitch_y - 0.5) for row, column in places)
            boxes = ((left, top, left + self.n_keys, top + self.n_queries) for left, top in corners)
            return outline(boxes, colour, width)

        strong = [frames([self.places[tile] for tile in self.chosen], theme.accent, 2.5)] if self.chosen else []
        captions = scatter(
            x=[column * self.pitch_x + (self.n_keys - 1) / 2 for _, column in self.places],
            y=[row * self.pitch_y - 0.5 - self.caption / 2 for row, _ in self.places],
            text=list(self.names),
            mode="text",
            textfont={
                "size": max(_SMALLEST_CAPTION, min(size, _CAPTIONS_ACROSS // self.columns)),
                "color": [theme.accent if tile in self.chosen else theme.muted for tile in range(len(self.names))],
            },
            hoverinfo="skip",
            cliponaxis=False,
        )
        return [frames(self.places, theme.grid, 1), *strong, captions]

    def layout(self, theme: Theme, size: int, height: int) -> dict[str, Any]:
        """The layout of a figure that is this grid."""
        bare = {"visible": False, "fixedrange": True}
        return {
            **base_layout(theme, size),
            "height": height,
            "margin": {"t": 22, "b": 2, "l": 2, "r": 2},
            "xaxis": {"range": [-0.5, self.width - 0.5], **bare},
            "yaxis": {"range": [self.height - 0.5, -0.5 - self.caption], **bare},
        }


class HeadGrid(Grid):
    """A tile for each head.

    Args:
        layers: their numbers.
        shape: how many heads a layer has, or tiles a row; queries; keys.
        tiles: layer and head of each tile, row after row; by default all heads, by layers.
        focus: layer and head that have a strong frame; `mean` and `max` are the whole layer.
        best: layer and head that have a star.
    """

    def __init__(
        self,
        layers: tuple[int, ...],
        shape: tuple[int, ...],
        tiles: Sequence[tuple[int, int]] | None,
        focus: tuple[int, Head] | None,
        best: tuple[int, int] | None = None,
    ) -> None:
        columns, *cells = shape
        self.tiles = tiles or [(layer, head) for layer in layers for head in range(columns)]
        layer, head = focus or (None, 0)
        chosen = [i for i, tile in enumerate(self.tiles) if tile[0] == layer and (isinstance(head, str) or tile[1] == head)]
        names = [head_label(*tile) + " ★" * (tuple(tile) == best) for tile in self.tiles]
        super().__init__(names, columns, (cells[0], cells[1]), chosen)

    def figure(
        self,
        maps: list[Plain],
        patterns: list[Plain],
        title: str,
        kind: Kind,
        blocks: tuple[int, int],
        style: Style,
        height: int | None,
    ) -> PlainFigure:
        """The whole figure; its `meta` is the grid, for turning a click into layer and head, and what one cell stands for.
        Without a height it has what the rows of tiles need."""
        size, height = style.size - 1, height or 28 + max(min(4, self.n_rows) * 98, _LEAST_OF_A_ROW * self.n_rows)
        font = {"size": size + 2, "color": style.colours.ink}
        # As far from the edge in a tall figure.
        heading = {"text": title, "font": font, "x": 0.5, "y": max(0.985, 1 - _TITLE_BELOW / height), "yanchor": "top"}
        tiles = [list(tile) for tile in self.tiles]
        meta: dict[str, Any] = {"kind": kind, "layers": self.n_rows, "tiles": tiles, "heads": self.columns}
        meta |= {"pitch_x": self.pitch_x, "pitch_y": self.pitch_y, "block": list(blocks)}
        meta |= {"rows": self.n_queries, "columns": self.n_keys}
        layout = {**self.layout(style.colours, size, height), "title": heading, "meta": meta}
        return PlainFigure([*maps, *patterns, *self.marks(style.colours, size)], layout)
