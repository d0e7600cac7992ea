"""Small pictures of runs as SVG, for lists: maps side by side, or the tree of a search. They have no words."""

from collections.abc import Sequence

import numpy as np

from transformer_viz.figures.theme import Theme
from transformer_viz.trace.search import Search

WIDTH, HEIGHT = 132, 84
_GAP, _SHADES = 5, 12
_LEAST = 0.04
"""The share of the strongest colour below which a cell is the ground."""

Map = tuple[np.ndarray, np.ndarray]
"""Numbers from −1 to 1, and bool, True = masked; both (query, key)."""


def maps(drawn: Sequence[Map], per_row: int, theme: Theme, *, is_signed: bool = False) -> str:
    """Draws maps in rows of so many.

    Args:
        drawn: the maps.
        per_row: how many stand side by side.
        theme: colours.
        is_signed: whether the last one has numbers below 0, too.
    """
    n_rows, parts = -(-len(drawn) // per_row), []
    width, height = (WIDTH - _GAP * (per_row - 1)) / per_row, (HEIGHT - _GAP * (n_rows - 1)) / n_rows
    for place, (values, masked) in enumerate(drawn):
        row, column = divmod(place, per_row)
        scale = theme.diverging if is_signed and place == len(drawn) - 1 else theme.scale
        at = f"translate({column * (width + _GAP):.1f} {row * (height + _GAP):.1f})"
        size = f"scale({width / values.shape[1]:.3f} {height / values.shape[0]:.3f})"
        cells = _cells(values, masked, scale, theme, is_signed=scale is theme.diverging)
        parts.append(f'<g transform="{at} {size}">{cells}</g>')
    return _svg("".join(parts))


def tree(search: Search, theme: Theme) -> str:
    """Draws the tree of a search: a column for each step, and the best way in the colour of what is in focus."""
    nodes = search.nodes
    best = {id(node) for node in search.path(search.best[0])}
    n_steps, most = max(node.step for node in nodes) + 1, max(node.rank for node in nodes if node.state != "pruned") + 2
    across, down = (WIDTH - 12) / n_steps, (HEIGHT - 10) / most

    def at(number: int | None) -> tuple[float, float]:
        node = None if number is None else nodes[number]
        return (6, 6) if node is None else (6 + across * (node.step + 1), 6 + down * min(node.rank, most - 1))

    lines = []
    for number, node in sorted(enumerate(nodes), key=lambda one: id(one[1]) in best):
        if node.state == "pruned" and node.rank >= most:
            continue
        (x0, y0), (x1, y1), is_best = at(node.parent), at(number), id(node) in best
        colour, width = (theme.accent, 2.4) if is_best else (theme.other, 1)
        lines.append(f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="{colour}" stroke-width="{width}" fill="none"/>')
        lines.append(f'<circle cx="{x1:.1f}" cy="{y1:.1f}" r="{2.4 if is_best else 1.4}" fill="{colour}"/>')
    return _svg("".join(lines))


def _cells(values: np.ndarray, masked: np.ndarray, scale: Sequence[str], theme: Theme, *, is_signed: bool) -> str:
    """One path a colour, in cells."""
    n_rows, n_columns = values.shape
    shares = np.clip(np.nan_to_num((values + 1) / 2 if is_signed else values), 0, 1)
    shades = np.rint(shares * _SHADES).astype(int)
    ground = f'<path d="M0 0h{n_columns}v{n_rows}H0z" fill="{scale[(len(scale) - 1) // 2 if is_signed else 0]}"/>'
    paths = [ground]
    for shade in np.unique(shades):
        here = (shades == shade) & ~masked
        if abs(shade / _SHADES - (0.5 if is_signed else 0)) > _LEAST and here.any():
            paths.append(_path(here, scale[round(float(shade) / _SHADES * (len(scale) - 1))]))
    return "".join([*paths, _path(masked, theme.masked)] if masked.any() else paths)


def _path(where: np.ndarray, colour: str) -> str:
    cells = "".join(f"M{column} {row}h1v1h-1z" for row, column in zip(*map(np.ndarray.tolist, np.nonzero(where)), strict=True))
    return f'<path d="{cells}" fill="{_hex(colour)}"/>'


def _hex(colour: str) -> str:
    """Plotly's `rgb(1, 2, 3)` without blanks; others as they are."""
    return colour.replace(" ", "")


def _svg(inner: str) -> str:
    looks = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" shape-rendering="crispEdges"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {looks}>{inner}</svg>'
