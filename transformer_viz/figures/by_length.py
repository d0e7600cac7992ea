"""How far a model goes: exact match at each source length with its interval, and the best head's mass below it."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.length_report import AtLength, ByLength
from transformer_viz.errors import OptionError
from transformer_viz.figures.theme import FONT, Theme, ThemeName, base_layout, escape, see_through, theme_of
from transformer_viz.numbers_in_words import count_words, interval_words, percent_words
from transformer_viz.terms import head_title

_SHARES = (0, 0.25, 0.5, 0.75, 1)
_LENGTH = escape("tokens of the source, without <start> and <end>")


def accuracy_by_length(
    found: ByLength, *, theme: ThemeName = "light", large: bool = False, narrow: bool = False, height: int | None = None
) -> go.Figure:
    """Shares by source length; the lengths of training are shaded, what lies beyond them is not.

    Args:
        found: from `evaluation.by_length.accuracy_by_length`.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.
        narrow: for a phone.
        height: in pixels.

    Raises:
        OptionError: there is no length to draw.
    """
    if not found.points:
        raise OptionError("There is no length to draw; measure at least one.")
    colours, size = theme_of(theme), 17 if large else 13
    lengths = [point.length for point in found.points]
    edges = [lengths[0] - 0.5, lengths[-1] + 0.5]
    traces: list[Any] = [_interval(found, colours), _exact(found, colours, size)]
    mass = [found.best_mass(point) for point in found.points]
    if any(value is not None for value in mass):
        traces.append(_mass(found, mass, colours, size))
    return go.Figure(
        traces,
        {
            **base_layout(colours, size),
            "hoverlabel": {"align": "left", "font": {"family": FONT, "size": size}},
            "height": height or (380 if narrow else 460 if large else 400),
            "showlegend": True,
            "legend": _legend(size),
            "margin": {"l": 8, "r": 12, "t": 100 if narrow else 56, "b": 52},
            "shapes": _trained_shape(found, edges, colours),
            "annotations": _trained_words(found, edges, colours, size),
            "xaxis": _lengths_axis(edges, colours, size, narrow),
            "yaxis": _shares_axis(colours),
        },
    )


def _legend(size: int) -> dict[str, Any]:
    return {
        "orientation": "h",
        "x": 0,
        "y": 1,
        "yref": "container",
        "yanchor": "top",
        "font": {"size": size},
        "itemclick": False,
        "itemdoubleclick": False,
    }


def _lengths_axis(edges: list[float], colours: Theme, size: int, narrow: bool) -> dict[str, Any]:
    return {
        "range": edges,
        "title": {"text": _LENGTH, "standoff": 8, "font": {"size": size, "color": colours.muted}},
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "dtick": _tick_step(edges[1] - edges[0], narrow),
        "tick0": 0,
        "ticks": "outside",
        "tickcolor": colours.grid,
    }


def _shares_axis(colours: Theme) -> dict[str, Any]:
    return {
        "range": [-0.03, 1.06],
        "tickvals": _SHARES,
        "ticktext": [percent_words(share) for share in _SHARES],
        "gridcolor": colours.grid,
        "zeroline": False,
        "fixedrange": True,
        "automargin": True,
    }


def _exact(found: ByLength, colours: Theme, size: int) -> go.Scatter:
    return go.Scatter(
        x=np.array([point.length for point in found.points]),
        y=np.array([point.exact_match for point in found.points]),
        mode="lines+markers",
        name="whole output right",
        legendrank=1,
        line={"color": colours.chosen, "width": 2.5},
        marker={"size": 6 if size < 16 else 8, "symbol": "circle"},
        customdata=[_hover(found, point) for point in found.points],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _interval(found: ByLength, colours: Theme) -> go.Scatter:
    """The 95 % interval as a band: one point has n strings, so the share is known only so well."""
    lengths = [point.length for point in found.points]
    low = [point.interval[0] for point in found.points]
    high = [point.interval[1] for point in found.points]
    if len(lengths) == 1:  # a band needs a width to be seen
        lengths, low, high = [lengths[0] - 0.2, lengths[0] + 0.2], low * 2, high * 2
    return go.Scatter(
        x=np.array([*lengths, *lengths[::-1]], dtype=float),
        y=np.array([*high, *low[::-1]]),
        mode="lines",
        line={"width": 0},
        fill="toself",
        fillcolor=see_through(colours.chosen, 0.28),
        name="its 95 % interval (Wilson)",
        legendrank=2,
        hoverinfo="skip",
    )


def _mass(found: ByLength, mass: list[float | None], colours: Theme, size: int) -> go.Scatter:
    best = found.best_head
    assert best is not None
    return go.Scatter(
        x=np.array([point.length for point in found.points]),
        y=np.array([np.nan if value is None else value for value in mass]),
        mode="lines+markers",
        name=f"weight on the true key, {head_title(*best)}",
        legendrank=3,
        line={"color": colours.accent, "width": 2, "dash": "dot"},
        marker={"size": 6 if size < 16 else 8, "symbol": "diamond-open"},
        hoverinfo="skip",
    )


def _hover(found: ByLength, point: AtLength) -> str:
    ends = interval_words(point.interval, percent_words, 1)
    mass = found.best_mass(point)
    lines = [
        f"<b>{count_words(point.length, 'token')}</b>, " + ("as in training" if point.is_trained else "outside training"),
        f"whole output right: <b>{point.n_exact:,} of {point.n_strings:,}</b> (95 % interval {ends})",
        f"tokens right: {percent_words(point.token_accuracy, 1)}",
        "" if mass is None else f"weight on the true key: {mass:.3f}",
    ]
    return "<br>".join(line for line in lines if line)


def _trained_shape(found: ByLength, edges: list[float], colours: Theme) -> list[dict[str, Any]]:
    left, right = _trained_span(found, edges)
    if left >= right:
        return []
    box = {"type": "rect", "xref": "x", "yref": "paper", "x0": left, "x1": right, "y0": 0, "y1": 1}
    return [{**box, "fillcolor": see_through(colours.muted, 0.13), "line": {"width": 0}, "layer": "below"}]


def _trained_words(found: ByLength, edges: list[float], colours: Theme, size: int) -> list[dict[str, Any]]:
    """Which lengths are those of training, above the shade."""
    left, right = _trained_span(found, edges)
    width = edges[1] - edges[0]
    first, last = found.trained
    words = f"trained on {first}–{last}" if first < last else f"trained on {first}"
    if left >= right:
        return []
    return [
        {
            "text": words,
            "x": min(max((left + right) / 2, edges[0] + 0.12 * width), edges[1] - 0.12 * width),
            "y": 1,
            "yanchor": "bottom",
            "xref": "x",
            "yref": "paper",
            "showarrow": False,
            "font": {"size": size, "color": colours.muted},
        }
    ]


def _trained_span(found: ByLength, edges: list[float]) -> tuple[float, float]:
    """The trained lengths as far as they are drawn."""
    return max(edges[0], found.trained[0] - 0.5), min(edges[1], found.trained[1] + 0.5)


def _tick_step(width: float, narrow: bool) -> int:
    """1, 2, 5, 10, … so that at most so many ticks are drawn."""
    most = 8 if narrow else 20
    return next(step for power in range(7) for step in (10**power, 2 * 10**power, 5 * 10**power) if width / step <= most)
