"""A training as it goes: loss, exact match on texts that are not trained on, and each head's mass on the true key."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from transformer_viz.figures.theme import Theme, ThemeName, base_layout, theme_of
from transformer_viz.terms import head_label

Row = Mapping[str, Any]
_LEFT, _RIGHT = [0, 0.46], [0.55, 1]
_MASS = "mass_"


def training(rows: Sequence[Row], steps: int, *, theme: ThemeName = "light", narrow: bool = False) -> go.Figure:
    """Two panels over the steps: the loss (logarithmic), and shares from 0 to 1.

    Args:
        rows: rows of a checkpoint's history; every one has `step` and `loss`, some have `held_out` and `mass_LAYER_HEAD`.
        steps: where the axis ends.
        theme: `light` or `dark`.
        narrow: the panels below each other, for a phone.
    """
    colours = theme_of(theme)
    size = 12
    figure = go.Figure(
        layout={
            **base_layout(colours, size),
            "height": 520 if narrow else 300,
            "margin": {"l": 8, "r": 8, "t": 42, "b": 8},
            "xaxis": _steps(steps, colours, size, "y", [0, 1] if narrow else _LEFT),
            "yaxis": _loss_axis(rows, colours, size, [0.6, 1] if narrow else [0, 1]),
            "xaxis2": _steps(steps, colours, size, "y2", [0, 1] if narrow else _RIGHT),
            "yaxis2": {
                **_plain(colours, size),
                "range": [-0.02, 1.02],
                "anchor": "x2",
                "domain": [0, 0.4] if narrow else [0, 1],
            },
            "annotations": _titles(colours, size, narrow),
            "hovermode": "closest",
        }
    )
    figure.add_scatter(
        x=[row["step"] for row in rows],
        y=[row["loss"] for row in rows],
        mode="lines",
        line={"color": colours.chosen, "width": 2},
        hovertemplate="step %{x}<br>loss <b>%{y:.4f}</b><extra></extra>",
    )
    for name, points, style in _shares(rows, colours):
        figure.add_scatter(
            x=[x for x, _ in points],
            y=[y for _, y in points],
            name=name,
            xaxis="x2",
            yaxis="y2",
            hovertemplate=f"step %{{x}}<br>{name} <b>%{{y:.3f}}</b><extra></extra>",
            **style,
        )
    return figure


def head_columns(rows: Sequence[Row]) -> dict[tuple[int, int], list[tuple[int, float]]]:
    """(layer, head) from 0 -> (step, mass on the true key), for the rows that have it."""
    found: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for row in rows:
        for name, value in row.items():
            parts = name.removeprefix(_MASS).split("_")
            if name.startswith(_MASS) and isinstance(value, int | float) and len(parts) == 2:
                found.setdefault((int(parts[0]), int(parts[1])), []).append((row["step"], float(value)))
    return found


def _shares(rows: Sequence[Row], theme: Theme) -> list[tuple[str, list[tuple[int, float]], dict[str, Any]]]:
    """Heads first, so that the exact match lies over them; the best head is named, the others are quiet."""
    heads = head_columns(rows)
    best = max(heads, key=lambda place: heads[place][-1][1]) if heads else None
    lines = []
    for place, points in sorted(heads.items(), key=lambda item: item[0] == best):
        is_best = place == best
        style = {"mode": "lines", "line": {"color": theme.accent if is_best else theme.other, "width": 2 if is_best else 1}}
        lines.append((f"{head_label(*place)} on the true key", points, style))
    held_out = [(row["step"], row["held_out"]) for row in rows if isinstance(row.get("held_out"), int | float)]
    marked = {"mode": "lines+markers", "line": {"color": theme.chosen, "width": 2.5}, "marker": {"size": 5}}
    return [*lines, ("exact match, held out", held_out, marked)] if held_out else lines


def _titles(theme: Theme, size: int, narrow: bool) -> list[dict[str, Any]]:
    said = (
        ("loss, nats a token (log scale)", 0.0, 1.0),
        (
            f"<span style='color:{theme.chosen}'>● exact match, held out</span><br>attention on the expected token: "
            f"<span style='color:{theme.accent}'>● best head</span>, others grey",
            0.0 if narrow else _RIGHT[0],
            0.4 if narrow else 1.0,
        ),
    )
    return [
        {
            "text": text,
            "x": x,
            "y": y,
            "xref": "paper",
            "yref": "paper",
            "xanchor": "left",
            "yanchor": "bottom",
            "showarrow": False,
            "align": "left",
            "font": {"size": size - (1 if narrow else 0), "color": theme.muted},
        }
        for text, x, y in said
    ]


def _steps(steps: int, theme: Theme, size: int, anchor: str, domain: list[float]) -> dict[str, Any]:
    title = {"text": "step", "font": {"size": size, "color": theme.muted}, "standoff": 4}
    return {**_plain(theme, size), "range": [0, steps * 1.01], "anchor": anchor, "domain": domain, "title": title}


def _loss_axis(rows: Sequence[Row], theme: Theme, size: int, domain: list[float]) -> dict[str, Any]:
    losses = [row["loss"] for row in rows if row["loss"] > 0] or [1.0]
    least = math.floor(math.log10(min(losses)) - 0.05)
    most = math.log10(max(losses)) + 0.1
    return {
        **_plain(theme, size),
        "type": "log",
        "range": [least, max(most, least + 1)],
        "domain": domain,
        "tickvals": [10.0**power for power in range(least, math.ceil(most) + 1)],
        "ticktext": [f"{10.0**power:g}" for power in range(least, math.ceil(most) + 1)],
    }


def _share_axis(theme: Theme, size: int) -> dict[str, Any]:
    return {**_plain(theme, size), "range": [-0.02, 1.02], "anchor": "x2"}


def _plain(theme: Theme, size: int) -> dict[str, Any]:
    return {
        "tickfont": {"size": size - 1, "color": theme.muted},
        "gridcolor": theme.grid,
        "zeroline": False,
        "fixedrange": True,
        "automargin": True,
        "ticks": "",
    }
