"""The layout of the step player's figure: where its maps and its candidates stand, and how high it is."""

from typing import Any

from transformer_viz.figures.theme import Style

Arrangement = dict[str, Any]
"""`height` in pixels, the domains of the axes by their names, whether the colour bar has a `scale` beside it, and the width of
a `ring` in pixels that fits into the smallest cell."""

TITLE = 26
"""Pixels above each of two maps."""
_MAP_SHARE = 0.66
_MODE_BAR = 26
"""Pixels above the candidates, where the buttons of Plotly appear."""
_MOST_TALL = 58
"""The figure grows with up to this many rows, to about 900 pixels; with more, rows become lower."""
_LEAST_HIGH = 230
"""The least height in pixels of a map without its labels."""


def arrange_player(shape: tuple[int, int], below: int, style: Style, *, has_candidates: bool, has_second: bool) -> Arrangement:
    """Candidates stand right of the map, or below it in a narrow figure; so does a second map.

    Args:
        shape: how many queries and keys a map has.
        below: pixels that the labels of the keys take below a map.
        style: of the figure.
        has_candidates: whether there are any.
        has_second: whether there is a second map.
    """
    n_queries, n_keys = shape
    rows, narrow = min(max(12, n_queries), _MOST_TALL), style.narrow
    # Large letters of 12 rows fit with the player into 720 pixels, and of 20 into 900.
    beside = (430 if style.large else 372) + max(0, rows - 14) * (14 if style.large else 12)
    place: Arrangement = {"height": max(beside, _LEAST_HIGH + below), "x": [0, 1], "y": [0, 1], "scale": True}
    between = max(120, below + 40)
    if has_candidates and narrow:
        tall = 210 + between + 14 * rows
        share, first = 170 / tall, (170 + between) / tall
        place |= {"height": tall, "y": [first, 1], "x2": [0.02, 0.97], "y2": [0, share], "scale": False}
    elif has_candidates:
        place |= {"x": [0, _MAP_SHARE], "x2": [0.84 if has_second else 0.79, 1], "y2": [0, 1 - _MODE_BAR / place["height"]]}
    if has_second and not narrow:
        place |= {"height": place["height"] + TITLE, "x": [0, 0.33], "x3": [0.42, 0.75], "y3": place["y"]}
    elif has_second:
        height, between = place["height"], max(120, below + 40 + TITLE)
        high = place["y"][1] * height - place["y"][0] * height
        tall = height + between + high
        first = (tall - high) / tall
        place |= {"y2": [0, place["y2"][1] * height / tall]} if has_candidates else {}
        place |= {"height": round(tall + TITLE), "y": [first, 1]}
        place |= {"x3": place["x"], "y3": [first - (between + high) / tall, first - between / tall]}
    # Pixels that the labels take from the figure's height, and the least width of the map between them.
    labels, width = (110, 250) if narrow else (90, 400)
    bottom, top = place["y"]
    cell = min((place["height"] - labels) * (top - bottom) / n_queries, width / n_keys)
    return {**place, "ring": max(5, min(24, round(cell) - 3))}
