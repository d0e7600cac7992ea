"""Room for labels, estimated beforehand.

Plotly makes room for labels by itself (`automargin`), but only after a first drawing, and then draws everything again, which is
half of a map's time. A margin that is large enough from the start saves that; Plotly still corrects one that is too small.
"""

import html
import unicodedata
from collections.abc import Sequence

_NARROW, _WIDE = frozenset("fijlrtI.,:;'|!()[]· "), frozenset("mwMW@%→…␣<>")


def text_width(label: str, size: int) -> float:
    """About how wide a label is, in pixels; rather too wide, since fonts differ."""
    return size * sum(_share(symbol) for symbol in html.unescape(label))


def margins(columns: Sequence[str], rows: Sequence[str], size: int, *, upright: bool) -> dict[str, int]:
    """The margins of a map with these tick labels and a title on both axes.

    Args:
        columns: labels below the map.
        rows: labels on its left.
        size: of the letters, in pixels.
        upright: the labels below are turned by 90 degrees.
    """
    widest = max((text_width(label, size) for label in rows), default=0)
    tallest = max((text_width(label, size) for label in columns), default=0) if upright else 1.2 * size
    title = 1.3 * size + 8
    return {"l": round(widest + title), "b": round(tallest + title), "r": 14, "t": 8}


def _share(symbol: str) -> float:
    """Width as a share of the letters' size."""
    if unicodedata.combining(symbol):
        return 0
    if unicodedata.east_asian_width(symbol) in "WF":
        return 1
    if symbol in _NARROW:
        return 0.32
    if symbol in _WIDE:
        return 0.85
    return 0.65 if symbol.isupper() else 0.52
