"""A − B of all heads at a glance: the tiles of `mosaic`, in the colours of a difference.

As in `mosaic`, small maps are sent as float32, larger ones as one byte a cell, and maps with more cells than pixels are thinned
out. A block of cells shows its difference farthest from 0, the first one of equals, so that B − A looks the same but for the
sign.
"""

from collections.abc import Sequence

import numpy as np

from transformer_viz.analysis.word_pooling import kind_title
from transformer_viz.comparison.compare import IN_A, IN_B, IN_BOTH, AlignedMaps, compare
from transformer_viz.figures.difference import absent_pattern, alignment_words, check_limit, crossed_pattern
from transformer_viz.figures.figure_data import PlainFigure, plotly_figure
from transformer_viz.figures.mosaic import EMPTY, HeadGrid, block_sizes, coded_scale, in_rows, is_exact
from transformer_viz.figures.theme import Style, even_scale
from transformer_viz.language import enumerated, known, say
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.trace import Trace

_MASKED, _BROKEN, _ZERO, _SHADES = 2, 4, 130, 124
"""The codes of a byte: 6 to 254 are differences from −limit to limit, so that 130 is 0; two more are masked and absent."""


@plotly_figure
def difference_mosaic(
    a: Trace,
    b: Trace,
    kind: Kind,
    focus: tuple[int, Head] | None = None,
    *,
    heads: Sequence[tuple[int, int]] | None = None,
    columns: int | None = None,
    limit: float = 1.0,
    height: int | None = None,
    names: tuple[str, str] = ("A", "B"),
    style: Style = Style(),
) -> PlainFigure:
    """Draws a small map of A − B for every layer and head that both runs have.

    Args:
        a: the run from which is subtracted.
        b: the run that is subtracted.
        kind: `encoder`, `decoder` or `cross`; both must have it.
        focus: layer and head to outline; `mean` and `max` outline the whole layer.
        heads: layer and head of those that are drawn, of those that both have; by default all, by layers.
        columns: how many stand side by side; by default as many as a layer has.
        limit: the difference that has the strongest colour; larger ones have it too.
        height: in pixels; by default as many rows of tiles as layers need.
        names: what the title calls both runs.
        style: theme and size.

    `layout.meta` is that of `mosaic`: the grid of tiles, and how many queries and keys one cell stands for.

    Raises:
        OptionError: not both have this kind, or an impossible limit.
    """
    check_limit(limit)
    comparison, colours = compare(a, b), style.colours
    laid, layers = comparison.all_heads(kind), comparison.layers(kind)
    if heads is not None:
        places = [(layers.index(layer), head) for layer, head in heads]
        # Nothing differs in tiles that are missing in the last row.
        across = columns or laid.difference.shape[1]
        numbers, masked = (in_rows([cells[place] for place in places], across, 0) for cells in (laid.difference, laid.masked))
        laid = AlignedMaps(numbers, laid.present, masked)
    blocks = block_sizes(laid.difference.shape)
    if blocks != (1, 1):
        laid = thinned(laid, blocks)
    grid = HeadGrid(layers, laid.difference.shape[1:], heads, focus)
    corners = [(column * grid.pitch_x, row * grid.pitch_y) for row, column in grid.places]
    patterns = absent_pattern(laid.present, colours, corners)
    masked = (laid.masked == IN_BOTH) & ~np.isnan(laid.difference)
    visible = np.where(masked, np.float32(np.nan), laid.difference)
    if is_exact(laid.difference):
        crossed = ((laid.masked == IN_A) | (laid.masked == IN_B)).astype(np.uint8)
        patterns += crossed_pattern(grid.canvas(crossed, 0) > 0, colours)
        scale = {"zmin": -limit, "zmax": limit, "colorscale": even_scale(colours.diverging)}
        maps = grid.exact_maps(visible, scale, [(masked, colours.masked), (laid.broken, colours.broken)])
    else:
        codes = np.rint(np.clip(np.nan_to_num(visible, nan=0) / limit, -1, 1) * _SHADES + _ZERO).astype(np.uint8)
        codes = np.where(np.isnan(visible), np.uint8(EMPTY), codes)
        codes = np.where(masked, np.uint8(_MASKED), np.where(laid.broken, np.uint8(_BROKEN), codes))
        flat = {EMPTY: colours.paper, _MASKED: colours.masked, _BROKEN: colours.broken}
        maps = [grid.coded_map(codes, coded_scale(flat, _ZERO - _SHADES, _ZERO + _SHADES, colours.diverging))]
    rows, columns = blocks
    size = say("each cell the farthest from 0 of {rows} × {columns}", rows=rows, columns=columns)
    words = ["" if blocks == (1, 1) else size]
    about = [kind_title(a, kind, in_full=False), " − ".join(map(known, names)), alignment_words(comparison), *words]
    title = enumerated(filter(None, about))
    return grid.figure(maps, patterns, title, kind, blocks, style, height)


def thinned(laid: AlignedMaps, blocks: tuple[int, int]) -> AlignedMaps:
    """The difference farthest from 0 in each block; masked, or absent, where all of it is."""

    def blocked(cells: np.ndarray, missing: float) -> np.ndarray:
        """(…, query, key) -> (…, query block, key block, cell of the block); what is missing at the edges is `missing`."""
        *leading, n_queries, n_keys = cells.shape
        rows, columns = (-(-n // block) for n, block in zip((n_queries, n_keys), blocks, strict=True))
        edges = [(0, rows * blocks[0] - n_queries), (0, columns * blocks[1] - n_keys)]
        whole = np.pad(cells, [*[(0, 0)] * len(leading), *edges], constant_values=missing)
        apart = whole.reshape(*leading, rows, blocks[0], columns, blocks[1])
        return np.swapaxes(apart, -3, -2).reshape(*leading, rows, columns, blocks[0] * blocks[1])

    difference = blocked(laid.difference, np.nan)
    # −1 stands for no number and loses against every difference.
    farthest = np.where(np.isnan(difference), -1, np.abs(difference)).argmax(-1)
    chosen = np.take_along_axis(difference, farthest[..., None], -1)[..., 0]
    return AlignedMaps(chosen, blocked(laid.present, 0).max(-1), blocked(laid.masked, IN_BOTH).min(-1))
