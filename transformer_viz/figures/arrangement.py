"""Where in the player's figure its maps and its candidates stand: the figure's height in pixels, and the axes' domains.

In each function `below` is what the labels of the keys need below a map, in pixels.
"""

from typing import Any

Arrangement = dict[str, Any]
"""`height` in pixels, the domains of the axes by their names, and whether the bar of colours has its `scale` beside it."""

TITLE = 26
"""Pixels above each of two maps."""
_MAP_SHARE = 0.66
_MOST_TALL = 58
"""Rows that the figure grows with: about 900 pixels. More rows are lower ones."""
_LEAST_HIGH = 230
"""Pixels of a map of few rows above its labels, however long these are."""
_LEAST_OF_MAP = {False: (90, 400), True: (110, 250)}
"""Whether for a phone: pixels that the labels take from the figure's height, and the least width of the map between them."""


def with_candidates(n_queries: int, below: int, *, large: bool, narrow: bool) -> Arrangement:
    """The map beside the candidates, or above them."""
    rows = min(max(12, n_queries), _MOST_TALL)
    if narrow:
        between = max(120, below + 40)
        tall = 210 + between + 14 * rows
        share, first = 170 / tall, (170 + between) / tall
        return {"height": tall, "x": [0, 1], "y": [first, 1], "x2": [0.02, 0.97], "y2": [0, share], "scale": False}
    return {
        "height": max(_height(rows, large), _LEAST_HIGH + below),
        "x": [0, _MAP_SHARE],
        "y": [0, 1],
        "x2": [0.79, 1],
        "y2": [0, 1],
        "scale": True,
    }


def alone(n_queries: int, below: int, *, large: bool) -> Arrangement:
    """The map without candidates."""
    rows = min(max(12, n_queries), _MOST_TALL)
    return {"height": max(_height(rows, large), _LEAST_HIGH + below), "x": [0, 1], "y": [0, 1], "scale": True}


def with_second(place: Arrangement, below: int, *, narrow: bool) -> Arrangement:
    """The same with a second map, right of the first or below it."""
    if not narrow:
        candidates = {"x2": [0.84, 1]} if "x2" in place else {}
        return {**place, **candidates, "height": place["height"] + TITLE, "x": [0, 0.33], "x3": [0.42, 0.75], "y3": place["y"]}
    rows, between = place["y"][1] * place["height"] - place["y"][0] * place["height"], max(120, below + 40 + TITLE)
    tall = place["height"] + between + rows
    first = (tall - rows) / tall
    return {
        **place,
        "height": round(tall + TITLE),
        "y": [first, 1],
        "x3": place["x"],
        "y3": [first - (between + rows) / tall, first - between / tall],
        **({"y2": [0, place["y2"][1] * place["height"] / tall]} if "y2" in place else {}),
    }


def _height(rows: int, large: bool) -> int:
    """Pixels of a figure beside or without candidates. Large letters of 20 rows fit with the player into 900 pixels."""
    return (500 if large else 372) + max(0, rows - 14) * (14 if large else 12)


def ring_width(n_queries: int, n_keys: int, place: Arrangement, *, narrow: bool) -> float:
    """The width of a ring, in pixels, that fits into a cell of a map as small as it gets."""
    below, beside = _LEAST_OF_MAP[narrow]
    bottom, top = place["y"]
    cell = min((place["height"] - below) * (top - bottom) / n_queries, beside / n_keys)
    return max(5, min(24, round(cell) - 3))
