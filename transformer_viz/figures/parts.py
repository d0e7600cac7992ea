"""Building blocks of figures: axes, room for labels, colour bars, annotations, frames, and the layout of a line chart."""

import html
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from transformer_viz.figures.figure_data import Plain, scatter
from transformer_viz.figures.theme import Theme, base_layout, even_scale

MOST_TICKS = 64
"""Labels that an axis has room for."""
SHARES = (0, 0.25, 0.5, 0.75, 1)
"""Ticks of an axis from 0 to 1."""
HOVER = "%{hovertext}<extra></extra>"


def axis(colours: Theme, size: int, ends: Sequence[float], title: str = "", **more: Any) -> dict[str, Any]:
    """An axis of numbers between two ends, or as wide as the data. The title is markup; `showgrid=True` adds grid lines."""
    return {
        **({"range": [*ends]} if ends else {}),
        "title": {"text": title, "font": {"size": size, "color": colours.muted}, "standoff": 6},
        "tickfont": {"size": size - 1, "color": colours.muted},
        "showgrid": False,
        "gridcolor": colours.grid,
        "zeroline": False,
        "automargin": True,
        "ticks": "",
        **more,
    }


def named_axis(
    colours: Theme, size: int, names: Sequence[str], title: str = "", *, every: int = 0, down: bool = False, **more: Any
) -> dict[str, Any]:
    """An axis of numbered cells with names, of which every `every`-th is drawn; with `down` the first is on top."""
    n = len(names)
    return axis(
        colours,
        size,
        (n - 0.5, -0.5) if down else (-0.5, n - 0.5),
        title,
        **{
            **ticks(names, every or -(-n // MOST_TICKS)),
            "tickfont": {"size": size, "color": colours.ink},
            # The margins make room for every label; to look which of them would run over costs a fifth of the drawing.
            "ticklabeloverflow": "allow",
            "ticklabelstandoff": 4,
            # Never slanted: where they have no room beside each other, upright.
            **({} if down else {"autotickangles": [0, -90]}),
            **more,
        },
    )


def ticks(names: Sequence[str], every: int) -> dict[str, Any]:
    """The tick settings for labels at positions from 0: the axis shows every `every`-th, the hover over a cell all of them.

    Where a label is left out, Plotly's hover has the position's number; an alias turns that into the label.
    """
    n = len(names)
    left_out = {str(place): names[place] for place in range(n) if place % every}
    shown = {"tickmode": "array", "tickvals": list(range(0, n, every)), "ticktext": list(names[::every])}
    return {**shown, "labelalias": left_out, "hoverformat": "d"} if left_out else shown


def text_width(label: str, size: int) -> float:
    """About how wide a label is, in pixels; rather too wide, since fonts differ."""
    return size * sum(map(_width, html.unescape(label)))


@cache
def _width(symbol: str) -> float:
    """Width as a share of the letters' size."""
    if unicodedata.combining(symbol):
        return 0
    if unicodedata.east_asian_width(symbol) in "WF":
        return 1
    if symbol in "fijlrtI.,:;'|!()[]· ":
        return 0.32
    if symbol in "mwMW@%→…␣<>":
        return 0.85
    return 0.65 if symbol.isupper() else 0.52


def margins(columns: Sequence[str], rows: Sequence[str], size: int, *, upright: bool) -> dict[str, int]:
    """The margins of a map with these tick labels below and on its left and a title on both axes; `upright` labels below are
    turned by 90 degrees.

    Plotly makes room for labels by itself (`automargin`), but only after a first drawing, and then draws everything again,
    which is half of a map's time. It still corrects a margin that is too small.
    """
    widest = max([text_width(label, size) for label in rows], default=0)
    tallest = max([text_width(label, size) for label in columns], default=0) if upright else 1.2 * size
    title = 1.3 * size + 8
    return {"l": round(widest + title), "b": round(tallest + title), "r": 14, "t": 8}


def edge(colours: Theme) -> dict[str, Any]:
    """The style of an axis that draws a thin line around the whole map."""
    return {"showline": True, "mirror": True, "linecolor": colours.grid}


def tick_step(width: float, most: int) -> int:
    """1, 2, 5, 10, … so that at most so many ticks are drawn."""
    return next(step for power in range(7) for step in (10**power, 2 * 10**power, 5 * 10**power) if width / step <= most)


def colour_axis(
    colours: Theme,
    size: int,
    ends: tuple[float, float],
    names: Sequence[str] = (),
    *,
    title: str = "",
    signed: bool = False,
    lying: bool = False,
    shows: bool = True,
    **bar: Any,
) -> dict[str, Any]:
    """Colours between two numbers, with a thin bar that says both and their middle.

    Args:
        colours: of the figure.
        size: of its letters.
        ends: the numbers with the first and the last colour.
        names: words on the bar instead of the three numbers.
        title: of the bar.
        signed: the colours of a difference.
        lying: whether the bar is horizontal, above the map's right end, instead of upright beside it.
        shows: whether there is a bar.
        bar: further properties of the bar.
    """
    middle, words = sum(ends) / 2, {"size": size - 1, "color": colours.muted}
    tick_values = [ends[0], middle, ends[1]]
    place: dict[str, Any] = {"x": 1, "xanchor": "left", "y": 1, "yanchor": "top", "len": 1, "outlinewidth": 0}
    if lying:
        place = {
            **{"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom", "len": 0.38, "xpad": 0, "ypad": 4},
            **{"outlinewidth": 1, "outlinecolor": colours.grid, "ticks": "", "ticklabelposition": "outside top"},
        }
    return {
        "cmin": ends[0],
        "cmax": ends[1],
        "colorscale": even_scale(colours.diverging if signed else colours.scale),
        "showscale": shows,
        "colorbar": {
            **place,
            "thickness": 8,
            "tickvals": tick_values,
            "ticktext": list(names) or [f"{tick:.2g}" for tick in tick_values],
            "tickfont": words,
            "title": {"text": title, "font": words},
            **bar,
        },
    }


def words_at(text: str, x: float, y: float, size: int, colour: str, **more: Any) -> dict[str, Any]:
    """An annotation whose lower left corner is at (x, y), in shares of the figure's width and height."""
    place = {"x": x, "y": y, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "align": "left"}
    return {"text": text, **place, "showarrow": False, "font": {"size": size, "color": colour}, **more}


def frame(left: float, top: float, right: float, bottom: float, colour: str, width: float, number: int = 1) -> dict[str, Any]:
    """A frame around cells, from one to another, on the axes of this number."""
    sides = {"x0": left - 0.5, "x1": right + 0.5, "y0": top - 0.5, "y1": bottom + 0.5}
    return {"type": "rect", **on_axes(number, "xref", "yref"), **sides, "line": {"color": colour, "width": width}}


def on_axes(number: int, x: str = "xaxis", y: str = "yaxis") -> dict[str, str]:
    """Names the axes that something is drawn on; Plotly has no number on the first."""
    return {x: f"x{number if number > 1 else ''}", y: f"y{number if number > 1 else ''}"}


def panel(number: int, traces: Iterable[Plain]) -> list[Plain]:
    """The traces, drawn on the axes of this number."""
    return [{**trace, **on_axes(number)} for trace in traces]


def panel_axes(
    number: int, x: dict[str, Any], y: dict[str, Any], across: Sequence[float], down: Sequence[float]
) -> dict[str, Any]:
    """The two axes of this number, in the part of the figure that has these two ends, in shares of its width and height."""
    names = on_axes(number)
    return {
        names["xaxis"].replace("x", "xaxis"): {**x, "domain": [*across], "anchor": names["yaxis"]},
        names["yaxis"].replace("y", "yaxis"): {**y, "domain": [*down], "anchor": names["xaxis"]},
    }


def rectangles(boxes: Iterable[tuple[float, float, float, float]]) -> tuple[list[float | None], list[float | None]]:
    """The corners of boxes (left, top, right, bottom), one closed polygon each, None between two."""
    x: list[float | None] = []
    y: list[float | None] = []
    for left, top, right, bottom in boxes:
        x += [left, right, right, left, left, None]
        y += [top, top, bottom, bottom, top, None]
    return x, y


def outline(boxes: Iterable[tuple[float, float, float, float]], colour: str, width: float) -> Plain:
    """Frames as one trace: a shape for each would cost the browser more than the map."""
    x, y = rectangles(boxes)
    return scatter(x=x, y=y, mode="lines", line={"color": colour, "width": width}, hoverinfo="skip", cliponaxis=False)


def filled(x: Sequence[Any], y: Sequence[Any], **fill: Any) -> Plain:
    """A closed line, which is not seen itself, filled with `fillcolor` or a `fillpattern`."""
    return scatter(x=x, y=y, mode="lines", line={"width": 0}, fill="toself", hoverinfo="skip", **fill)


def legend(size: int, **more: Any) -> dict[str, Any]:
    """A legend in lines above everything."""
    return {"orientation": "h", "x": 0, "y": 1, "yref": "container", "yanchor": "top", "font": {"size": size}, **more}


def chart_layout(colours: Theme, size: int, height: int, *, left: int = 8, top: int = 8) -> dict[str, Any]:
    """The layout of a chart of lines: a legend above, and room for the axes."""
    return {
        **base_layout(colours, size),
        "height": height,
        "margin": {"l": left, "r": 14, "t": top, "b": 48},
        "showlegend": True,
        "legend": legend(size),
    }
