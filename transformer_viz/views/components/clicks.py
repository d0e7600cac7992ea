"""Turns a click on a chart into a tile of a mosaic, a cell of a heatmap or a point of a scatter."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Clicks:
    """What the browser finds under the pointer, and who hears it. It says what it wants: `heard` passes over nonsense."""

    on: Literal["tile", "cell", "point"]
    heard: Callable[[Any], None]


def tiles(on_tile: Callable[[dict[str, Any]], None]) -> Clicks:
    """`on_tile` gets kind, layer, head, and the step the player is at; what is not in the run is for it to find out."""

    def heard(tile: Any) -> None:
        if isinstance(tile, dict):
            on_tile(tile)

    return Clicks("tile", heard)


def cells(on_cell: Callable[[int | None, int | None], None]) -> Clicks:
    """`on_cell` gets query and key; a click on a label leaves the other one None."""

    def heard(cell: Any) -> None:
        query, key = (cell.get("query"), cell.get("key")) if isinstance(cell, dict) else (None, None)
        if all(place is None or (isinstance(place, int) and 0 <= place < 512) for place in (query, key)):
            on_cell(query, key)

    return Clicks("cell", heard)


def points(on_point: Callable[[int], None]) -> Clicks:
    """`on_point` gets the `customdata` of the point, a whole number."""

    def heard(point: Any) -> None:
        if isinstance(point, int) and point >= 0:
            on_point(point)

    return Clicks("point", heard)
