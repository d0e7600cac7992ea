"""A head of A, a head of B, and A − B, where they lie upon each other: by position, and of runs by words by the words' text.

What is no number of A − B is drawn as what it is: dotted where only one run has the cell, hatched where both mask it.
A cell that one alone masks keeps its colour and is crossed.
"""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.align import largest
from transformer_viz.analysis.comparison import IN_A, IN_B, IN_BOTH, AlignedMaps, Comparison, compare, of_b
from transformer_viz.analysis.word_pairs import Pair
from transformer_viz.errors import OptionError
from transformer_viz.figures import cells
from transformer_viz.figures.maps import broken, grey, heat_map, hidden, weight_map
from transformer_viz.figures.plain import Plain, scatter
from transformer_viz.figures.theme import Theme, ThemeName, base_layout, even, shown, theme_of
from transformer_viz.terms import Head, Kind, head_title, place_label
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import PAD

_LONGEST_WORD, _SMALLEST = 9, 8
"""Signs of a token in a label, and the size of the smallest letters."""
_PAGE_WIDTH, _PHONE_WIDTH = 1300, 350
"""About as many pixels as the page gives to the figure; row labels take a share of it."""
_HEAD = 40
"""Pixels above a map, for its title and colour bar."""


def difference(
    a: Trace,
    b: Trace,
    kind: Kind,
    layer: int = 0,
    head: Head = 0,
    *,
    b_layer: int | None = None,
    b_head: Head | None = None,
    limit: float = 1.0,
    theme: ThemeName = "light",
    large: bool = False,
    columns: int = 3,
) -> go.Figure:
    """One head in two runs, and the signed difference A − B where both have the cell.

    Args:
        a: the run from which is subtracted.
        b: the run that is subtracted.
        kind: `encoder`, `decoder` or `cross`; both must have it.
        layer: of A, from 0.
        head: of A, from 0, or `mean` or `max` over the heads of the layer.
        b_layer: of B; the same as A's by default.
        b_head: likewise.
        limit: the difference that has the strongest colour; larger ones have it too.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.
        columns: maps side by side; 1 on a phone.

    Raises:
        OptionError: a run has no such kind, layer or head, or an impossible limit.
    """
    if not 0 < limit <= 1:
        raise OptionError(f"limit={limit!r} is not possible; it is above 0 and at most 1")
    comparison = compare(a, b)
    laid = comparison.one_head(kind, layer, head, b_layer, b_head)
    colours, size = theme_of(theme), 16 if large else 12
    sides = (("A", a, (layer, head)), ("B", b, of_b(layer, head, b_layer, b_head)))
    panels = [
        _Panel(
            f"{name} · {head_title(*place)}",
            *_labels_of(run, kind),
            weight_map(run, kind, *place, colours, {"coloraxis": "coloraxis"}),
        )
        for name, run, place in sides
    ]
    title = f"A − B{upon_words(comparison)}"
    panels.append(_Panel(title, *_joined_labels(comparison, kind), _signed(laid, limit, colours)))
    if framed := _largest_cell(laid):
        _frame(panels, framed, comparison.pairs(kind))
    return _laid_out(panels, limit, colours, size, columns)


def upon_words(comparison: Comparison) -> str:
    """For a title, where rows and columns do not lie upon each other by position."""
    return ", words by their text" if comparison.is_by_text else ""


class _Panel:
    """One map: its title, labels and traces."""

    def __init__(self, title: str, rows: Sequence[str], columns: Sequence[str], traces: list[Any]) -> None:
        self.title, self.rows, self.columns, self.traces = title, rows, columns, traces
        self.framed: tuple[int, int] | None = None


def _signed(laid: AlignedMaps, limit: float, colours: Theme) -> list[Any]:
    """The difference in up to three traces, so that the hover can name the mask; then all that is no difference."""
    drawn: list[Any] = []
    for code, words in ((0, ""), (IN_A, "<br>masked in A, open in B"), (IN_B, "<br>masked in B, open in A")):
        here = laid.masked == code
        if code == 0 or here.any():
            number = "%{z:+.4f}</b>" + words + "<b>"
            drawn.append(heat_map(np.where(here, laid.difference, np.nan), "A − B", {"coloraxis": "coloraxis2"}, number))
    drawn += crossed_pattern((laid.masked == IN_A) | (laid.masked == IN_B), colours)
    drawn += hidden((laid.masked == IN_BOTH) & ~np.isnan(laid.difference), colours, "masked in both")
    drawn += broken(np.where(laid.broken, np.nan, 0), colours)
    for code, words in ((IN_A, "only A has this cell"), (IN_B, "only B has this cell"), (0, "neither has this cell")):
        if (laid.present == code).any():
            # As empty as what lies between the maps, but with a hover that says why.
            drawn.append(grey(laid.present == code, words, colours.paper))
    return [*drawn, *absent_pattern(laid.present, colours)]


def absent_pattern(present: np.ndarray, colours: Theme, corners: Sequence[tuple[int, int]] = ((0, 0),)) -> list[Plain]:
    """Dots over rows and columns that not both have, in maps that begin at `corners` (column, row)."""
    rows, columns = ((present == IN_BOTH).any(axis) for axis in (1, 0))
    sides = [(left, top, right, bottom) for top, bottom in _stretches(rows) for left, right in _stretches(~columns)]
    sides += [(0, top, len(columns), bottom) for top, bottom in _stretches(~rows)]
    x: list[float | None] = []
    y: list[float | None] = []
    for right, down in corners:
        for left, top, end, bottom in sides:
            x += [*(right + edge - 0.5 for edge in (left, end, end, left, left)), None]
            y += [*(down + edge - 0.5 for edge in (top, top, bottom, bottom, top)), None]
    return [_patterned(x, y, ".", colours.muted, 6)] if sides else []


def _stretches(here: np.ndarray) -> list[tuple[int, int]]:
    """Where each run of True begins and ends."""
    edges = np.diff(np.pad(here.astype(np.int8), 1)).nonzero()[0].tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def crossed_pattern(here: np.ndarray, colours: Theme) -> list[Plain]:
    """Crosses over cells that one run alone masks."""
    return [_patterned(*cells.hatch_outline(here), "x", colours.ink, 7)] if here.any() else []


def _patterned(x: list[float | None], y: list[float | None], shape: str, colour: str, size: int) -> Plain:
    """Polygons filled with a pattern that has nothing behind it."""
    fill = {"shape": shape, "fgcolor": colour, "bgcolor": "rgba(0,0,0,0)", "size": size, "solidity": 0.16, "fgopacity": 0.8}
    return scatter(x=x, y=y, mode="lines", line={"width": 0}, fill="toself", fillpattern=fill, hoverinfo="skip")


def _largest_cell(laid: AlignedMaps) -> tuple[int, int] | None:
    """(query, key), or None where nothing differs."""
    size = np.nan_to_num(np.abs(laid.difference), nan=0)
    query, key = largest(size)
    return (query, key) if size[query, key] > 0 else None


def _frame(panels: Sequence[_Panel], cell: tuple[int, int], pairs: tuple[Sequence[Pair], Sequence[Pair]]) -> None:
    """The same cell in A, in B and in A − B."""
    (a_query, b_query), (a_key, b_key) = (line[place] for line, place in zip(pairs, cell, strict=True))
    for panel, query, key in zip(panels, (a_query, b_query, cell[0]), (a_key, b_key, cell[1]), strict=True):
        if query is not None and key is not None:
            panel.framed = query, key


# ---- labels


def _labels_of(run: Trace, kind: Kind) -> tuple[list[str], list[str]]:
    """Of rows and columns: `3·l→o` and `3·l`."""
    rows, written, columns = _words_of(run, kind)
    return _numbered(rows, written), _numbered(columns)


def _joined_labels(comparison: Comparison, kind: Kind) -> tuple[list[str], list[str]]:
    """`3·l` where both have it, `3·l≠k` where they differ, `9·B: k` where one alone has a token there; the number is A's where
    A has one."""
    (a_rows, a_written, a_columns), (b_rows, b_written, b_columns) = (
        _words_of(run, kind) for run in (comparison.a, comparison.b)
    )
    rows, columns = comparison.pairs(kind)
    written = _joined(a_written, b_written, rows) if a_written and b_written else []
    return _numbered(_joined(a_rows, b_rows, rows), written, rows), _numbered(
        _joined(a_columns, b_columns, columns), (), columns
    )


def _joined(a: Sequence[str], b: Sequence[str], pairs: Sequence[Pair]) -> list[str]:
    names = []
    for here, there in pairs:
        if here is None or there is None:
            names.append(f"A: {a[here]}" if here is not None else f"B: {b[there or 0]}")
        else:
            names.append(a[here] if a[here] == b[there] else f"{a[here]}≠{b[there]}")
    return names


def _words_of(run: Trace, kind: Kind) -> tuple[list[str], list[str], list[str]]:
    """Tokens of the rows, what was written from them where that is known, and tokens of the columns, as they are drawn."""
    written = () if kind == "encoder" else run.output_tokens
    outs = ["" if read == PAD else _word(out) for read, out in zip(run.attentions[kind].queries, written, strict=False)]
    return list(map(_word, run.attentions[kind].queries)), outs, list(map(_word, run.attentions[kind].keys))


def _numbered(words: Sequence[str], written: Sequence[str] = (), pairs: Sequence[Pair] | None = None) -> list[str]:
    """`3·l`, and `3·l→o`."""
    places = range(len(words)) if pairs is None else [there or 0 if here is None else here for here, there in pairs]
    arrows = [f"→{out.removeprefix('A: ').removeprefix('B: ')}" if out else "" for out in written] or [""] * len(words)
    return [f"{place_label(place, word)}{arrow}" for place, word, arrow in zip(places, words, arrows, strict=True)]


def _word(token: str) -> str:
    """A token, cut where it would leave no room for the map."""
    return shown(token, _LONGEST_WORD)


def _length(label: str) -> int:
    """How many signs are seen: an escaped one is one."""
    return len(html.unescape(label))


# ---- where everything stands


def _laid_out(panels: list[_Panel], limit: float, colours: Theme, size: int, columns: int) -> go.Figure:
    lines = -(-len(panels) // columns)
    inner = max(180, min(27 * max(len(panel.rows) for panel in panels), 430))
    width = _PAGE_WIDTH if columns > 1 else _PHONE_WIDTH
    height = _HEAD + inner + 10 + _turned_height(panels, size, width / columns)
    layout: dict[str, Any] = {**base_layout(colours, size), "height": height * lines, "annotations": [], "shapes": []}
    layout["margin"] = {"l": 0, "r": 4, "t": 0, "b": 0}
    drawn: list[Any] = []
    for place, panel in enumerate(panels):
        line, column = divmod(place, columns)
        labels = 10 + 0.56 * size * max(map(_length, panel.rows))
        left = column / columns + min(labels / width, 0.5 / columns)
        right = (column + 1) / columns - (0.012 if column < columns - 1 else 0)
        top = 1 - (line * height + _HEAD) / (height * lines)
        bottom = 1 - (line * height + _HEAD + inner) / (height * lines)
        number = place + 1
        axis = _axis(panel.columns, colours, size, room=(right - left) * width / len(panel.columns))
        layout[f"xaxis{number}"] = {**axis, "domain": (left, right), "anchor": f"y{number}"}
        rows = _axis(panel.rows, colours, size, room=inner / len(panel.rows))
        layout[f"yaxis{number}"] = {**rows, "range": rows["range"][::-1], "domain": (bottom, top), "anchor": f"x{number}"}
        if _is_turned(panel, size):
            layout[f"xaxis{number}"]["tickangle"] = -90
        layout["annotations"].append(_title(panel.title, column / columns, top, colours, size))
        if place in (0, 2):
            is_signed = place == 2
            corner = (right - (2 * size / width if is_signed else 0), top)
            layout["coloraxis2" if is_signed else "coloraxis"] = _bar(is_signed, corner, limit, colours, size, columns)
        if panel.framed is not None:
            layout["shapes"].append(_ring(panel.framed, number, colours))
        for trace in panel.traces:
            drawn.append({**trace, "xaxis": f"x{number}", "yaxis": f"y{number}"})
    return go.Figure(drawn, layout)


def _axis(names: Sequence[str], colours: Theme, size: int, room: float) -> dict[str, Any]:
    """Positions with their labels, in smaller letters where a cell has little `room`, in pixels."""
    n = len(names)
    letters = _letters(size, room)
    every = max(1, -(-int(letters + 1) // max(1, int(room))))
    return {
        "range": [-0.5, n - 0.5],
        **cells.ticks(names, every),
        "tickfont": {"size": letters, "color": colours.ink},
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "automargin": False,
        "ticks": "",
        "showline": True,
        "mirror": True,
        "linecolor": colours.grid,
    }


def _letters(size: int, room: float) -> int:
    """Their size where a cell has `room`, in pixels."""
    return int(min(size, max(_SMALLEST, room - 1)))


def _is_turned(panel: _Panel, size: int) -> bool:
    """Whether the column labels stand upright: where they would not fit side by side."""
    room = (_PHONE_WIDTH - 60) / max(1, len(panel.columns))
    return max(map(_length, panel.columns)) * 0.6 * size > room


def _turned_height(panels: Sequence[_Panel], size: int, width: float) -> int:
    """Pixels of the longest upright label, in maps of at most this width."""
    turned = [panel.columns for panel in panels if _is_turned(panel, size)]
    heights = (0.52 * _letters(size, width / len(names)) * max(map(_length, names)) for names in turned)
    return round(max(heights, default=size))


def _title(words: str, left: float, top: float, colours: Theme, size: int) -> dict[str, Any]:
    """Above the row labels: above the map is the colour bar, and no room for both where labels are long."""
    place = {"x": left, "y": top, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "yshift": 6}
    return {"text": f"<b>{words}</b>", "showarrow": False, "font": {"size": size + 2, "color": colours.ink}, **place}


def _bar(is_signed: bool, corner: tuple[float, float], limit: float, colours: Theme, size: int, columns: int) -> dict[str, Any]:
    """A lying colour bar above the map's right end."""
    ends = (-limit, limit) if is_signed else (0, 1)
    words = [f"B +{limit:.2g}", "0", f"A +{limit:.2g}"] if is_signed else ["0", "0.5", "1"]
    return {
        "cmin": ends[0],
        "cmax": ends[1],
        "colorscale": even(colours.diverging if is_signed else colours.scale),
        "colorbar": {
            "orientation": "h",
            "x": corner[0],
            "xanchor": "right",
            "y": corner[1],
            "yanchor": "bottom",
            "len": (0.42 if is_signed else 0.3) / columns,
            "thickness": 8,
            "xpad": 0,
            "ypad": 4,
            "outlinewidth": 1 if is_signed else 0,
            "outlinecolor": colours.grid,
            "tickvals": [ends[0], sum(ends) / 2, ends[1]],
            "ticktext": words,
            "ticks": "",
            "ticklabelposition": "outside top",
            "tickfont": {"size": size - 1, "color": colours.muted},
        },
    }


def _ring(cell: tuple[int, int], number: int, colours: Theme) -> dict[str, Any]:
    query, key = cell
    sides = {"x0": key - 0.5, "x1": key + 0.5, "y0": query - 0.5, "y1": query + 0.5}
    return {"type": "rect", "xref": f"x{number}", "yref": f"y{number}", "line": {"color": colours.ink, "width": 2}, **sides}
