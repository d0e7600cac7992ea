"""Every head as a tinted tile with its name and one grade: layers are rows, heads are columns, one panel a kind."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.grading import Grades, HeadGrade, Measures, alignment
from transformer_viz.analysis.measures import MEASURES
from transformer_viz.errors import OptionError, listed
from transformer_viz.figures.theme import FONT, Theme, ThemeName, base_layout, escape, even, flat, theme_of
from transformer_viz.numbers_in_words import count_words, share_words
from transformer_viz.terms import KIND_TITLES, Kind, head_title
from transformer_viz.trace.trace import Trace

TINTS = {name: measure.title for name, measure in MEASURES.items() if measure.is_share} | {"score": "how well the name fits"}
"""What tiles can be tinted by, and what it is called."""
_WIDE, _NARROW = 1380, 350
"""Pixels that a page and a phone have for all panels."""
_NAME_NEEDS, _VALUE_NEEDS = 74, 34
"""Pixels of a tile that a name needs, and a value."""
_MOST_TILES = 16
"""Tiles side by side at which the panels still stand beside each other."""
_HEAD, _TITLE, _TICKS, _GAP = 24, 30, 26, 18
"""Pixels above all for what the colour means, above a panel for its title, below it for its numbers, between rows."""


def grades(
    run: Trace | Grades,
    tint: str = "mass",
    *,
    theme: ThemeName = "light",
    large: bool = False,
    narrow: bool = False,
) -> go.Figure:
    """Layers × heads of every kind; the colour, 0 to 1, is the grade that `tint` names.

    Args:
        run: a run, or its grades from `analysis.alignment`.
        tint: a measure that lies between 0 and 1, as `mass`, `hit_rate` and `entropy_share`, or `score`. A head without it is
            grey.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.
        narrow: one panel below the other, for a phone.

    Raises:
        OptionError: another tint, or a run without attention.
    """
    if tint not in TINTS:
        raise OptionError(f"tint {tint!r} is not known; choose one of {listed(TINTS)}")
    found = run if isinstance(run, Grades) else alignment(run)
    if not found.kinds:
        raise OptionError("This run has no attention to grade; give one with at least one kind of attention.")
    colours, size = theme_of(theme), 16 if large else 13
    rows = _arranged([_Panel(kind, found.of(kind), tint) for kind in found.kinds], narrow)
    n_columns, width, tile = len(rows[0]), _NARROW if narrow else _WIDE, 58 if large else 46
    heights = [max(panel.n_layers for panel in row) * tile for row in rows]
    height = _HEAD + sum(heights) + len(rows) * (_TITLE + _TICKS) + (len(rows) - 1) * _GAP
    layout: dict[str, Any] = {
        **base_layout(colours, size),
        "height": height,
        "margin": {"l": 0, "r": 0 if narrow else 48, "t": 0, "b": 0},
        "hoverlabel": {"align": "left", "font": {"family": FONT, "size": size}},
        "coloraxis": _colour_axis(colours, size, shows=not narrow),
        "annotations": [_words_at(f"colour, 0 to 1: {TINTS[tint]}", 0, 1, size, colours.muted)],
    }
    traces: list[Any] = []
    top = float(_HEAD)
    for row, panel_height in zip(rows, heights, strict=True):
        for column, panel in enumerate(row):
            number = len(traces) // 3 + 1
            traces += panel.tiles(colours, size, width / n_columns / panel.n_heads, f"x{number}", f"y{number}")
            left, right = _span(column, n_columns, width, 4.2 * size)
            bottom = top + _TITLE + panel.n_layers * tile
            y = (1 - bottom / height, 1 - (top + _TITLE) / height)
            layout |= panel.axes(number, (left, right), y, colours, size)
            layout["annotations"].append(_words_at(panel.title, left, 1 - top / height, size + 1, colours.ink))
        top += _TITLE + panel_height + _TICKS + _GAP
    return go.Figure(traces, layout)


def _arranged(panels: list["_Panel"], narrow: bool) -> list[list["_Panel"]]:
    """Rows of panels: all beside each other where their tiles are few and the page is wide, else one a row."""
    if narrow:  # what is tinted comes first, what is all grey last
        panels = sorted(panels, key=lambda panel: panel.is_grey)
    beside = not narrow and sum(panel.n_heads for panel in panels) <= _MOST_TILES
    return [panels] if beside else [[panel] for panel in panels]


class _Panel:
    """The tiles of one kind."""

    def __init__(self, kind: Kind, heads: Sequence[HeadGrade], tint: str) -> None:
        self.kind, self.heads, self.tint = kind, heads, tint
        self.layers = sorted({head.layer for head in heads})
        self.n_layers = len(self.layers)
        self.n_heads = max(head.head for head in heads) + 1
        self.values = np.full((self.n_layers, self.n_heads), np.nan, dtype=np.float32)
        for head in heads:
            value = getattr(head, tint)
            self.values[self._row(head), head.head] = np.nan if value is None else value

    @property
    def title(self) -> str:
        """The kind, and why all of it is grey where it is."""
        missing = MEASURES[self.tint].missing if self.tint in MEASURES else "no row with a choice"
        return KIND_TITLES[self.kind] + (f": {missing}" if self.is_grey else "")

    @property
    def is_grey(self) -> bool:
        """Whether no head has the grade."""
        return bool(np.isnan(self.values).all())

    def tiles(self, colours: Theme, size: int, room: float, xaxis: str, yaxis: str) -> list[Any]:
        """The tinted tiles, the grey ones of heads without the grade, and what is written on them."""
        shared: dict[str, Any] = {
            "xaxis": xaxis,
            "yaxis": yaxis,
            "customdata": self._hovers(),
            "hovertemplate": "%{customdata}<extra></extra>",
            "hoverongaps": False,
            "xgap": 2,
            "ygap": 2,
        }
        grey = np.where(np.isnan(self.values), np.float32(1), np.float32(np.nan))
        return [
            go.Heatmap(z=self.values, coloraxis="coloraxis", **shared),
            go.Heatmap(z=grey, colorscale=flat(colours.grid), showscale=False, **shared),
            # Not the heatmap's own text: its grey on the middle colours is hard to read.
            go.Scatter(
                x=[head.head for head in self.heads],
                y=[self._row(head) for head in self.heads],
                text=[_words(head, self.tint, room) for head in self.heads],
                mode="text",
                textfont={"size": size, "color": [ink_on(getattr(head, self.tint), colours) for head in self.heads]},
                hoverinfo="skip",
                xaxis=xaxis,
                yaxis=yaxis,
            ),
        ]

    def axes(self, number: int, x: tuple[float, float], y: tuple[float, float], colours: Theme, size: int) -> dict[str, Any]:
        """Heads from the left, the lowest layer on top."""
        shared = {
            "tickmode": "array",
            "tickfont": {"size": size - 1, "color": colours.muted},
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
            "ticks": "",
        }
        every = 1 if self.n_heads <= 16 else 4
        heads = range(0, self.n_heads, every)
        is_roomy = self.n_heads <= 8
        return {
            f"xaxis{number}": {
                **shared,
                "range": [-0.5, self.n_heads - 0.5],
                "domain": x,
                "anchor": f"y{number}",
                "tickvals": list(heads),
                "ticktext": [f"head {head + 1}" if is_roomy else str(head + 1) for head in heads],
            },
            f"yaxis{number}": {
                **shared,
                "range": [self.n_layers - 0.5, -0.5],
                "domain": y,
                "anchor": f"x{number}",
                "tickvals": list(range(self.n_layers)),
                "ticktext": [f"layer {layer + 1}" for layer in self.layers],
            },
        }

    def _hovers(self) -> list[list[str]]:
        grid = [[""] * self.n_heads for _ in range(self.n_layers)]
        for head in self.heads:
            grid[self._row(head)][head.head] = _hover(head)
        return grid

    def _row(self, head: HeadGrade) -> int:
        """Of its layer among those that the run has."""
        return self.layers.index(head.layer)


def _words(head: HeadGrade, tint: str, room: float) -> str:
    """What a tile says: name and value, the value alone where there is little room, nothing where there is none."""
    value = getattr(head, tint)
    number = "" if value is None else share_words(value)
    if room >= _NAME_NEEDS:
        return "<br>".join(filter(None, (escape(head.name), number)))
    return number if room >= _VALUE_NEEDS else ""


def ink_on(value: float | None, colours: Theme, scale: Sequence[str] = ()) -> str:
    """Black or white, whichever stands out more from the tile (WCAG 2.2, contrast ratio): 4.5 at least, on any colour.

    Args:
        value: how far along the colours the tile is, 0 to 1; None for one without a number.
        colours: of the picture.
        scale: its colours where they are not the sequential ones.
    """
    if value is None:
        return colours.ink
    stops = np.array([_parts(colour) for colour in scale or colours.scale])
    place = np.clip(value, 0, 1) * (len(stops) - 1)
    channels = np.array([np.interp(place, np.arange(len(stops)), channel) for channel in stops.T]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ (0.2126, 0.7152, 0.0722))
    return "#000000" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "#ffffff"


def _parts(colour: str) -> list[float]:
    """Red, green and blue of `#rrggbb` or `rgb(r, g, b)`, 0 to 255."""
    if colour.startswith("#"):
        return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return [float(part) for part in colour[4:-1].split(",")]


def _hover(head: HeadGrade) -> str:
    """Everything about a head, each grade beside its baselines."""
    score = "" if head.score is None else f" {share_words(head.score)}"
    lines = [
        f"<b>{head_title(head.layer, head.head)}: {escape(head.name)}</b>{score}",
        escape(head.rule),
        *(_line(measure.title, name, head) for name, measure in MEASURES.items()),
        f"{count_words(head.n_rows, 'row')} judged" + (f", {head.n_left_out} left out" if head.n_left_out else ""),
    ]
    return "<br>".join(line for line in lines if line)


def _line(words: str, name: str, head: HeadGrade) -> str:
    value = getattr(head, name)
    if value is None:
        return ""
    beside = [f"uniform {_of(head.even, name)}"]
    if head.untrained is not None:
        beside.append(f"untrained {_of(head.untrained, name)}")
    return f"{words} <b>{share_words(value)}</b> ({', '.join(beside)})"


def _of(measures: Measures, name: str) -> str:
    value = getattr(measures, name)
    return "–" if value is None else share_words(value)


def _span(column: int, n_columns: int, width: int, before: float) -> tuple[float, float]:
    """Left and right of a panel, as shares of the width; the names of its layers stand before it, in so many pixels."""
    return column / n_columns + before / width, (column + 1) / n_columns - 0.008


def _colour_axis(colours: Theme, size: int, *, shows: bool) -> dict[str, Any]:
    bar = {"thickness": 10, "outlinewidth": 0, "x": 1, "xanchor": "left", "xpad": 8, "ypad": 12, "tickvals": [0, 0.5, 1]}
    bar["tickfont"] = {"size": size - 1, "color": colours.muted}
    return {"cmin": 0, "cmax": 1, "colorscale": even(colours.scale), "showscale": shows, "colorbar": bar}


def _words_at(text: str, x: float, y: float, size: int, colour: str) -> dict[str, Any]:
    place = {"x": x, "y": y, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top", "showarrow": False}
    return {"text": text, **place, "font": {"size": size, "color": colour}}
