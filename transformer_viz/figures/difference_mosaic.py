"""A − B of all heads at a glance: the tiles of `mosaic`, in the colours of a difference.

As there: float32 for small maps, one byte a cell for larger ones, and maps with more cells than pixels thinned out;
a block shows its difference farthest from 0, and of two as far the first, so that A − B is B − A with the other sign.
"""

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict, Unpack

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.comparison import IN_A, IN_B, IN_BOTH, AlignedMaps, compare
from transformer_viz.analysis.words import kind_title
from transformer_viz.errors import OptionError
from transformer_viz.figures.difference import absent_pattern, crossed_pattern, upon_words
from transformer_viz.figures.mosaic import EXACT_UP_TO, Grid, block_sizes
from transformer_viz.figures.plain import Plain, PlainFigure, heatmap
from transformer_viz.figures.theme import Theme, ThemeName, even, flat, theme_of
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.trace import Trace

_QUIET = {"showscale": False, "hoverinfo": "none", "hoverongaps": False}
_EXACT_CELLS = 20_000
_EMPTY, _MASKED, _BROKEN, _ZERO, _SHADES = 0, 2, 4, 130, 124
"""Codes of a byte: 6 to 254 is a difference from −limit to limit, 130 is none; and three that are no number."""


def difference_mosaic(
    a: Trace,
    b: Trace,
    kind: Kind,
    focus: tuple[int, Head] | None = None,
    *,
    heads: Sequence[tuple[int, int]] | None = None,
    columns: int | None = None,
    limit: float = 1.0,
    theme: ThemeName = "light",
    large: bool = False,
    height: int | None = None,
) -> go.Figure:
    """Every layer and head that both runs have, as small maps of A − B.

    Args:
        a: the run from which is subtracted.
        b: the run that is subtracted.
        kind: `encoder`, `decoder` or `cross`; both must have it.
        focus: layer and head to outline; `mean` and `max` outline the whole layer.
        heads: layer and head of those that are drawn, of those that both have; by default all, by layers.
        columns: how many stand side by side; by default as many as a layer has.
        limit: the difference that has the strongest colour; larger ones have it too.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.
        height: in pixels; by default as many rows of tiles as layers need.

    `layout.meta` is that of `mosaic`: the grid of tiles, and how many queries and keys one cell stands for.

    Raises:
        OptionError: not both have this kind, or an impossible limit.
    """
    tiles: dict[str, Any] = {"heads": heads, "columns": columns, "height": height}
    return plain_difference_mosaic(a, b, kind, focus, limit=limit, theme=theme, large=large, **tiles).to_plotly()


class DifferenceLooks(TypedDict):
    """What such a mosaic has, and how it looks; see `difference_mosaic`."""

    heads: NotRequired[Sequence[tuple[int, int]] | None]
    columns: NotRequired[int | None]
    limit: float
    theme: ThemeName
    large: bool
    height: NotRequired[int | None]


def plain_difference_mosaic(
    a: Trace, b: Trace, kind: Kind, focus: tuple[int, Head] | None, **looks: Unpack[DifferenceLooks]
) -> PlainFigure:
    """The same as plain data."""
    limit, colours, size = looks["limit"], theme_of(looks["theme"]), 15 if looks["large"] else 12
    if not 0 < limit <= 1:
        raise OptionError(f"limit={limit!r} is not possible; it is above 0 and at most 1")
    comparison = compare(a, b)
    laid, layers, tiles = comparison.all_heads(kind), comparison.layers(kind), looks.get("heads")
    if tiles is not None:
        laid = _of_heads(laid, [(layers.index(layer), head) for layer, head in tiles], looks.get("columns"))
    blocks = block_sizes(laid.difference.shape)
    if blocks != (1, 1):
        laid = thinned(laid, blocks)
    grid = Grid(layers, *laid.difference.shape[1:], tiles=tiles)
    corners = [(column * grid.pitch_x, row * grid.pitch_y) for row, column in grid.places]
    patterns = absent_pattern(laid.present, colours, corners)
    if _is_exact(laid):
        patterns += crossed_pattern(_canvas_mask(grid, (laid.masked == IN_A) | (laid.masked == IN_B)), colours)
    words = "" if blocks == (1, 1) else f", each cell the farthest from 0 of {blocks[0]} × {blocks[1]}"
    return PlainFigure(
        [
            *_heatmaps(grid, laid, limit, colours),
            *patterns,
            *grid.outlines(colours, focus),
            grid.captions(colours, size, focus),
        ],
        {
            **grid.layout(
                f"{kind_title(a, kind, in_full=False)}, A − B{upon_words(comparison)}{words}",
                colours,
                size,
                looks.get("height"),
            ),
            "meta": {"kind": kind, **grid.meta(), "block": list(blocks)},
            "margin": {"t": 22, "b": 2, "l": 2, "r": 2},
        },
    )


def _of_heads(laid: AlignedMaps, places: list[tuple[int, int]], columns: int | None) -> AlignedMaps:
    """(layer, head, …) -> (row of tiles, column, …); nothing differs in tiles that are missing in the last row."""
    width = columns or laid.difference.shape[1]

    def chosen(cells: np.ndarray) -> np.ndarray:
        found = [cells[place] for place in places]
        found += [np.zeros_like(found[0])] * (-len(found) % width)
        return np.stack(found).reshape(-1, width, *cells.shape[2:])

    return AlignedMaps(chosen(laid.difference), laid.present, chosen(laid.masked))


def thinned(laid: AlignedMaps, blocks: tuple[int, int]) -> AlignedMaps:
    """Of each block the difference farthest from 0; masked, or absent, where all of it is."""
    difference = _blocked(laid.difference, blocks, np.float32(np.nan))
    # −1 stands for no number and loses against every difference.
    sizes = np.where(np.isnan(difference), -1, np.abs(difference))
    farthest = sizes.argmax(-1)
    chosen = np.take_along_axis(difference, farthest[..., None], -1)[..., 0]
    present = _blocked(laid.present, blocks, np.uint8(0)).max(-1)
    masked = _blocked(laid.masked, blocks, np.uint8(IN_BOTH)).min(-1)
    return AlignedMaps(chosen, present, masked)


def _blocked(cells: np.ndarray, blocks: tuple[int, int], filler: np.generic) -> np.ndarray:
    """(…, query, key) -> (…, query block, key block, cell of the block); what is missing at the edges is `filler`."""
    *leading, n_queries, n_keys = cells.shape
    counts = [-(-n // block) for n, block in zip((n_queries, n_keys), blocks, strict=True)]
    missing = [(0, count * block - n) for n, count, block in zip((n_queries, n_keys), counts, blocks, strict=True)]
    whole = np.pad(cells, [*[(0, 0)] * len(leading), *missing], constant_values=filler)
    apart = whole.reshape(*leading, counts[0], blocks[0], counts[1], blocks[1])
    return np.swapaxes(apart, -3, -2).reshape(*leading, *counts, blocks[0] * blocks[1])


def _heatmaps(grid: Grid, laid: AlignedMaps, limit: float, colours: Theme) -> list[Plain]:
    masked = (laid.masked == IN_BOTH) & ~np.isnan(laid.difference)
    visible = np.where(masked, np.float32(np.nan), laid.difference)
    if _is_exact(laid):
        nan = np.float32(np.nan)
        flats = [(masked, colours.masked), (laid.broken, colours.broken)]
        return [
            heatmap(z=grid.canvas(visible, nan), zmin=-limit, zmax=limit, colorscale=even(colours.diverging), **_QUIET),
            *[
                heatmap(z=grid.canvas(np.where(here, np.float32(1), nan), nan), colorscale=flat(colour), **_QUIET)
                for here, colour in flats
                if here.any()
            ],
        ]
    shades = np.rint(np.clip(np.nan_to_num(visible, nan=0) / limit, -1, 1) * _SHADES + _ZERO).astype(np.uint8)
    codes = np.where(np.isnan(visible), np.uint8(_EMPTY), shades)
    codes = np.where(masked, np.uint8(_MASKED), np.where(laid.broken, np.uint8(_BROKEN), codes))
    return [heatmap(z=grid.canvas(codes, np.uint8(_EMPTY)), zmin=0, zmax=255, colorscale=_coded(colours), **_QUIET)]


def _is_exact(laid: AlignedMaps) -> bool:
    return max(laid.difference.shape[2:]) <= EXACT_UP_TO and laid.difference.size <= _EXACT_CELLS


def _coded(colours: Theme) -> list[list[Any]]:
    """Flat bands for empty, masked and broken cells, then the diverging scale with 0 in its middle."""
    bands: list[list[Any]] = []
    for code, colour in ((_EMPTY, colours.paper), (_MASKED, colours.masked), (_BROKEN, colours.broken)):
        bands += [[max(0.0, (code - 1) / 255), colour], [(code + 1) / 255, colour]]
    last = len(colours.diverging) - 1
    first = _ZERO - _SHADES
    bands.append([(_BROKEN + 1) / 255, colours.diverging[0]])
    shades = [[(first + 2 * _SHADES * i / last) / 255, colour] for i, colour in enumerate(colours.diverging)]
    return [*bands, *shades, [1.0, colours.diverging[-1]]]


def _canvas_mask(grid: Grid, here: np.ndarray) -> np.ndarray:
    """Which cells of the whole picture are such ones."""
    return grid.canvas(here.astype(np.uint8), np.uint8(0)) > 0
