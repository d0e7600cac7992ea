"""A training as it goes: loss, exact match on texts that are not trained on, and each head's mass on the true key."""

import math
from collections.abc import Sequence
from typing import Any

from transformer_viz.figures.figure_data import PlainFigure, plotly_figure, scatter
from transformer_viz.figures.parts import axis, on_axes, panel_axes, words_at
from transformer_viz.figures.theme import Style, base_layout
from transformer_viz.terms import head_label
from transformer_viz.training.result import Row, best_head, head_masses


@plotly_figure
def training(rows: Sequence[Row], steps: int, *, style: Style = Style()) -> PlainFigure:
    """Draws the course of a training in two panels over the steps: the loss (logarithmic), and shares from 0 to 1.

    Args:
        rows: rows of a checkpoint's history; every one has `step` and `loss`, some have `held_out` and `mass_LAYER_HEAD`.
        steps: where the axis ends.
        style: theme and size; the panels of a narrow figure stand below each other.
    """
    colours, size, narrow = style.colours, style.size - 1, style.narrow
    right = 0.0 if narrow else 0.55
    drawn = [
        scatter(
            x=[row["step"] for row in rows],
            y=[row["loss"] for row in rows],
            mode="lines",
            line={"color": colours.chosen, "width": 2},
            hovertemplate="step %{x}<br>loss <b>%{y:.4f}</b><extra></extra>",
        )
    ]
    # Heads first, so that the exact match lies over them; the best head is named, the others are quiet.
    best = best_head(rows)
    shares: list[tuple[str, list[tuple[int, float]], dict[str, Any]]] = []
    for place, points in sorted(head_masses(rows).items(), key=lambda item: item[0] == best):
        line = {"color": colours.accent, "width": 2} if place == best else {"color": colours.other, "width": 1}
        shares.append((f"{head_label(*place)} on the right token", points, {"mode": "lines", "line": line}))
    if held_out := [(row["step"], row["held_out"]) for row in rows if isinstance(row.get("held_out"), int | float)]:
        marked = {"mode": "lines+markers", "line": {"color": colours.chosen, "width": 2.5}, "marker": {"size": 5}}
        shares.append(("exact match, held out", held_out, marked))
    for name, points, looks in shares:
        x, y = (list(column) for column in zip(*points, strict=True))
        hover = f"step %{{x}}<br>{name} <b>%{{y:.3f}}</b><extra></extra>"
        drawn.append(scatter(x=x, y=y, name=name, **on_axes(2), hovertemplate=hover, **looks))
    losses = [row["loss"] for row in rows if row["loss"] > 0] or [1.0]
    least, most = math.floor(math.log10(min(losses)) - 0.05), math.log10(max(losses)) + 0.1
    powers = [10.0**power for power in range(least, math.ceil(most) + 1)]
    decades: dict[str, Any] = {"type": "log", "tickvals": powers, "ticktext": [f"{power:g}" for power in powers]}
    across = axis(colours, size, (0, steps * 1.01), "step", showgrid=True)
    loss = axis(colours, size, (least, max(most, least + 1)), showgrid=True, **decades)
    said = (
        f"<span style='color:{colours.chosen}'>● exact match, held out</span><br>attention on the right token:<br>"
        f"<span style='color:{colours.accent}'>● best head</span>, others grey"
    )
    looks = {"size": size - (1 if narrow else 0), "colour": colours.muted, "align": "left"}
    return PlainFigure(
        drawn,
        {
            **base_layout(colours, size),
            "height": 520 if narrow else 300,
            "margin": {"l": 8, "r": 8, "t": 56, "b": 8},
            **panel_axes(1, across, loss, [0, 1 if narrow else 0.46], [0.6 if narrow else 0, 1]),
            **panel_axes(2, across, axis(colours, size, (-0.02, 1.02), showgrid=True), [right, 1], [0, 0.4 if narrow else 1]),
            "annotations": [
                words_at("loss, nats a token (log scale)", 0, 1, **looks),
                words_at(said, right, 0.4 if narrow else 1, **looks),
            ],
            "hovermode": "closest",
        },
    )
