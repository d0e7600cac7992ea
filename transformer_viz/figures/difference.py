"""One head of run A, one of run B, and A − B in the cells that match: by position, or in runs by words by the words' text.

Cells without a difference are dotted where only one run has them, and hatched where both mask them. A cell that only one run
masks keeps its colour and is crossed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer_viz.addresses import AttentionAddress
from transformer_viz.comparison.align import largest
from transformer_viz.comparison.compare import IN_A, IN_B, IN_BOTH, AlignedMaps, Comparison, compare
from transformer_viz.comparison.word_pairs import Pair
from transformer_viz.errors import OptionError
from transformer_viz.figures import cells
from transformer_viz.figures.figure_data import Plain, PlainFigure, plotly_figure
from transformer_viz.figures.maps import Panel, labels_of, numbered, side_by_side, weight_map, words_of
from transformer_viz.figures.parts import filled, rectangles
from transformer_viz.figures.theme import Style, Theme
from transformer_viz.language import enumerated, known, say
from transformer_viz.terms import Kind, head_title
from transformer_viz.trace.trace import Trace


@plotly_figure
def difference(
    a: Trace,
    b: Trace,
    head: str | AttentionAddress,
    *,
    other: str | AttentionAddress | None = None,
    limit: float = 1.0,
    style: Style = Style(),
) -> PlainFigure:
    """Draws one head in two runs, and the signed difference A − B in the cells that both have.

    Args:
        a: the run from which is subtracted.
        b: the run that is subtracted.
        head: of A, such as `cross.2.3`, or all heads of a layer as one, `cross.2.mean` or `cross.2.max`; of a kind or a layer
            alone, such as `cross`, its first head.
        other: the head of B, of the same kind; by default the same as A's.
        limit: the difference that has the strongest colour; larger ones have it too.
        style: theme and size; the maps of a narrow figure stand below each other.

    Raises:
        OptionError: a run has no such kind, layer or head, or an impossible limit.
    """
    check_limit(limit)
    comparison, colours = compare(a, b), style.colours
    laid, (in_a, in_b) = comparison.one_head(head, other), comparison.heads(head, other)
    kind, sides = in_a[0], (("A", a, in_a[1:]), ("B", b, in_b[1:]))
    panels = [
        Panel(
            f"{name} · {head_title(*place)}",
            *labels_of(run, kind),
            weight_map(run, kind, *place, colours, {"coloraxis": "coloraxis"}),
        )
        for name, run, place in sides
    ]
    panels[0].bar = "coloraxis", (0, 1), ("0", "0.5", "1")
    panels.append(signed_panel(comparison, kind, limit, _signed(laid, colours)))
    query, key = largest(np.nan_to_num(np.abs(laid.difference), nan=0))
    if abs(laid.difference[query, key]) > 0:
        # The same cell in A, in B and in A − B, where it differs most.
        (a_query, b_query), (a_key, b_key) = (line[at] for line, at in zip(comparison.pairs(kind), (query, key), strict=True))
        for panel, row, column in zip(panels, (a_query, b_query, query), (a_key, b_key, key), strict=True):
            panel.framed = None if row is None or column is None else (column, row, column, row)
    return side_by_side(panels, style)


def check_limit(limit: float) -> None:
    """Raises an OptionError where no difference can have it."""
    if not 0 < limit <= 1:
        raise OptionError(f"limit={limit!r} is not possible; it is above 0 and at most 1")


def alignment_words(comparison: Comparison) -> str:
    """Words for the title where rows and columns are not matched by position."""
    return say("words by their text") if comparison.is_by_text else ""


def signed_panel(comparison: Comparison, kind: Kind, limit: float, drawn: list[Plain]) -> Panel:
    """The map of A − B, with the labels of both."""
    bar = "coloraxis2", (-limit, limit), (f"B +{limit:.2g}", "0", f"A +{limit:.2g}")
    return Panel(
        enumerated(filter(None, ["A − B", alignment_words(comparison)])), *_joined_labels(comparison, kind), drawn, bar=bar
    )


def signed_cells(values: np.ndarray, code: int, names: tuple[str, str] = ("A", "B"), axis: str = "coloraxis2") -> Plain:
    """Differences of cells that this code says who masks; a trace for each, so that the hover can name it. The first is that
    from which is subtracted; the axis is that of the colours."""
    a, b = map(known, names)
    words = {
        0: "",
        IN_A: say("<br>masked in {a}, open in {b}", a=a, b=b),
        IN_B: say("<br>masked in {a}, open in {b}", a=b, b=a),
    }[code]
    return cells.number_cells(values, f"{a} − {b}", "%{z:+.4f}</b>" + words + "<b>", coloraxis=axis)


def masked_in_both(here: np.ndarray, colours: Theme) -> list[Plain]:
    """Cells that both mask."""
    return cells.hidden(here, colours, say("masked in both"))


def not_in_both(present: np.ndarray, colours: Theme) -> list[Plain]:
    """Cells that only one run has: as empty as what lies between the maps, but with a hover that says why, and dotted."""
    drawn = []
    for code, words in (
        (IN_A, say("only A has this cell")),
        (IN_B, say("only B has this cell")),
        (0, say("neither has this cell")),
    ):
        if (present == code).any():
            drawn.append(cells.grey(present == code, words, colours.paper))
    return [*drawn, *absent_pattern(present, colours)]


def _signed(laid: AlignedMaps, colours: Theme) -> list[Plain]:
    """The difference, and all that is no difference."""
    drawn: list[Plain] = []
    for code in (0, IN_A, IN_B):
        here = laid.masked == code
        if code == 0 or here.any():
            drawn.append(signed_cells(np.where(here, laid.difference, np.nan), code))
    drawn += crossed_pattern((laid.masked == IN_A) | (laid.masked == IN_B), colours)
    drawn += masked_in_both((laid.masked == IN_BOTH) & ~np.isnan(laid.difference), colours)
    drawn += cells.broken(np.where(laid.broken, np.nan, 0), colours)
    return [*drawn, *not_in_both(laid.present, colours)]


def absent_pattern(present: np.ndarray, colours: Theme, corners: Sequence[tuple[int, int]] = ((0, 0),)) -> list[Plain]:
    """Dots over rows and columns that only one run has, in maps that begin at `corners` (column, row)."""

    def stretches(here: np.ndarray) -> list[tuple[int, int]]:
        """Finds where each run of True begins and ends."""
        edges = np.diff(np.pad(here.astype(np.int8), 1)).nonzero()[0].tolist()
        return list(zip(edges[::2], edges[1::2], strict=True))

    rows, columns = ((present == IN_BOTH).any(axis) for axis in (1, 0))
    sides = [(left, top, right, bottom) for top, bottom in stretches(rows) for left, right in stretches(~columns)]
    sides += [(0, top, len(columns), bottom) for top, bottom in stretches(~rows)]
    boxes = [
        (right + left - 0.5, down + top - 0.5, right + end - 0.5, down + bottom - 0.5)
        for right, down in corners
        for left, top, end, bottom in sides
    ]
    return [_patterned(rectangles(boxes), ".", colours.muted, 6)] if boxes else []


def crossed_pattern(here: np.ndarray, colours: Theme) -> list[Plain]:
    """Crosses over cells that one run alone masks."""
    return [_patterned(cells.hatch_outline(here), "x", colours.ink, 7)] if here.any() else []


def _patterned(corners: tuple[Sequence[Any], Sequence[Any]], shape: str, colour: str, size: int) -> Plain:
    """Polygons filled with a pattern that has nothing behind it."""
    pattern = {"shape": shape, "fgcolor": colour, "bgcolor": "rgba(0,0,0,0)", "size": size, "solidity": 0.16, "fgopacity": 0.8}
    return filled(*corners, fillpattern=pattern)


def _joined_labels(comparison: Comparison, kind: Kind) -> tuple[list[str], list[str]]:
    """`3·l` where both have it, `3·l≠k` where they differ, `9·B: k` where one alone has a token there; the number is A's where
    A has one."""

    def joined(a: Sequence[str], b: Sequence[str], pairs: Sequence[Pair]) -> list[str]:
        names = []
        for here, there in pairs:
            if here is None or there is None:
                names.append(f"A: {a[here]}" if here is not None else f"B: {b[there or 0]}")
            else:
                names.append(a[here] if a[here] == b[there] else f"{a[here]}≠{b[there]}")
        return names

    (a_rows, a_written, a_columns), (b_rows, b_written, b_columns) = (
        words_of(run, kind) for run in (comparison.a, comparison.b)
    )
    rows, columns = comparison.pairs(kind)
    down, across = ([there or 0 if here is None else here for here, there in pairs] for pairs in (rows, columns))
    written = joined(a_written, b_written, rows) if a_written and b_written else []
    written = [out.removeprefix("A: ").removeprefix("B: ") for out in written]
    return numbered(joined(a_rows, b_rows, rows), written, down), numbered(joined(a_columns, b_columns, columns), (), across)
