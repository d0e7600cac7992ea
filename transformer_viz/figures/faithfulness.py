"""Faithfulness curves: how much probability is lost without the tokens that a map puts first, and with these alone."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from transformer_viz.analysis.faithfulness import KS, MeanCurve
from transformer_viz.analysis.verdict import Mean
from transformer_viz.errors import OptionError
from transformer_viz.figures.theme import FONT, Theme, ThemeName, base_layout, escape, theme_of

_BASELINES = {"occlusion": "the cause's own order", "random": "a random order"}
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")
_PANELS = (
    ("comprehensiveness", "without the first k: <b>high</b> is faithful"),
    ("sufficiency", "with the first k alone: <b>low</b> is faithful"),
)


def faithfulness(
    curves: Sequence[MeanCurve], *, theme: ThemeName = "light", large: bool = False, narrow: bool = False
) -> go.Figure:
    """Probability lost, over the number of tokens k: comprehensiveness, and beside it sufficiency, on one scale.

    Args:
        curves: from `tv.faithfulness`. Intervals are drawn where there are several texts.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.
        narrow: the panels below each other, for a phone.

    Raises:
        OptionError: no step of these runs was judged.
    """
    colours, size = theme_of(theme), 16 if large else 13
    lines = _lines([curve for curve in curves if all(mean.value == mean.value for mean in curve.comprehensiveness)], colours)
    if not lines:
        raise OptionError("There is no curve to draw: no step of these runs has a cause among two tokens or more.")
    n_rows, height = (2 if narrow else 1), 250 if large else 210
    legend = 30 + 24 * (-(-len(lines) // 2) if narrow else 1)
    layout: dict[str, Any] = {
        **base_layout(colours, size),
        "hoverlabel": {"align": "left", "font": {"family": FONT, "size": size}},
        "height": legend + n_rows * (height + 56),
        "margin": {"l": 8, "r": 8, "t": legend, "b": 44},
        "showlegend": True,
        "legend": {
            **{"orientation": "h", "x": 0, "y": 1, "yref": "container", "yanchor": "top", "font": {"size": size}},
            **{"itemclick": False, "itemdoubleclick": False},
        },
        "annotations": [],
    }
    drawn: list[Any] = []
    for place, (what, words) in enumerate(_PANELS):
        x, y = _domains(place, narrow)
        layout |= _axes(place + 1, x, y, colours, size)
        layout["annotations"].append(_title(words, x[0], y[1], colours, size))
        drawn += [_line(curve, what, place + 1, style) for curve, style in lines]
    return go.Figure(drawn, layout)


def _domains(place: int, narrow: bool) -> tuple[list[float], list[float]]:
    """Where a panel is, in shares of the figure; below its title."""
    below = 0.58 * (1 - place)
    return ([0.0, 1.0], [below, below + 0.36]) if narrow else ([0.53 * place, 0.53 * place + 0.47], [0.0, 0.9])


def _lines(curves: Sequence[MeanCurve], colours: Theme) -> list[tuple[MeanCurve, dict[str, Any]]]:
    """The first map is the strongest; lines differ in their marks too."""
    palette = (colours.chosen, colours.accent, colours.literal, colours.broken, colours.hatch)
    found = []
    for number, curve in enumerate(each for each in curves if each.name not in _BASELINES):
        marks = {"size": 8, "symbol": _SYMBOLS[number % len(_SYMBOLS)]}
        line = {"color": palette[number % len(palette)], "width": 2 if number else 3.5}
        found.append((curve, {"mode": "lines+markers", "line": line, "marker": marks}))
    dashes = {"occlusion": (colours.ink, "dot"), "random": (colours.muted, "dash")}
    for curve in (each for each in curves if each.name in _BASELINES):
        colour, dash = dashes[curve.name]
        found.append((curve, {"mode": "lines", "line": {"color": colour, "width": 2, "dash": dash}}))
    return found


def _line(curve: MeanCurve, what: str, number: int, style: dict[str, Any]) -> go.Scatter:
    means: tuple[Mean, ...] = getattr(curve, what)
    name = _BASELINES.get(curve.name, curve.name)
    ends = [mean.interval for mean in means]
    spread = {
        "type": "data",
        "symmetric": False,
        "array": [0 if end is None else end[1] - mean.value for mean, end in zip(means, ends, strict=True)],
        "arrayminus": [0 if end is None else mean.value - end[0] for mean, end in zip(means, ends, strict=True)],
        "thickness": 1,
    }
    return go.Scatter(
        x=KS,
        y=[mean.value for mean in means],
        name=escape(name),
        showlegend=number == 1,
        xaxis=f"x{number}",
        yaxis=f"y{number}",
        error_y=spread if any(ends) else None,
        hovertemplate=f"{escape(name)}, k = %{{x}}<br>{what} <b>%{{y:.3f}}</b><extra></extra>",
        **style,
    )


def _axes(number: int, x: list[float], y: list[float], colours: Theme, size: int) -> dict[str, Any]:
    shared = {"fixedrange": True, "zeroline": False, "tickfont": {"size": size - 1, "color": colours.muted}}
    words = {"size": size, "color": colours.muted}
    return {
        f"xaxis{number}": {
            **shared,
            **{"domain": x, "anchor": f"y{number}", "tickvals": KS, "range": [0.8, KS[-1] + 0.2], "showgrid": False},
            "title": {"text": "k, how many tokens", "standoff": 4, "font": words},
        },
        f"yaxis{number}": {
            **shared,
            **{"domain": y, "anchor": f"x{number}", "gridcolor": colours.grid, "automargin": True, "tickformat": ".2f"},
            "title": {"text": "probability lost", "font": words},
            **({"matches": "y"} if number > 1 else {}),
        },
    }


def _title(words: str, x: float, y: float, colours: Theme, size: int) -> dict[str, Any]:
    place = {"x": x, "y": y, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "showarrow": False}
    return {**place, "text": words, "font": {"size": size, "color": colours.ink}}
