"""Faithfulness curves: how much probability is lost without the tokens that a map puts first, and with these alone."""

from collections.abc import Sequence
from typing import Any

from transformer_viz.analysis.intervals import Mean
from transformer_viz.attribution.result.faithfulness import KS, MeanCurve
from transformer_viz.errors import OptionError
from transformer_viz.figures.figure_data import Plain, PlainFigure, plotly_figure, scatter
from transformer_viz.figures.parts import axis, chart_layout, on_axes, panel_axes, words_at
from transformer_viz.figures.theme import Style, Theme, escape

_BASELINES = {"occlusion": "the cause's own order", "random": "a random order"}
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")
_PANELS = (
    ("comprehensiveness", "without the first k: <b>high</b> is faithful"),
    ("sufficiency", "with the first k alone: <b>low</b> is faithful"),
)


@plotly_figure
def faithfulness(curves: Sequence[MeanCurve], *, style: Style = Style()) -> PlainFigure:
    """Draws the lost probability over the number of tokens k: comprehensiveness beside sufficiency, on one scale.

    Args:
        curves: from `tv.faithfulness`. Intervals are drawn where there are several texts.
        style: theme and size; the panels of a narrow figure stand below each other.

    Raises:
        OptionError: no step of these runs was judged.
    """
    colours, size, narrow = style.colours, style.size, style.narrow
    lines = _lines([curve for curve in curves if all(mean.value == mean.value for mean in curve.comprehensiveness)], colours)
    if not lines:
        raise OptionError("There is no curve to draw: no step of these runs has a cause among two tokens or more.")
    n_rows, height = (2 if narrow else 1), 250 if style.large else 210
    legend = 30 + 24 * (-(-len(lines) // 2) if narrow else 1)
    layout = {**chart_layout(colours, size, legend + n_rows * (height + 56), top=legend), "annotations": []}
    drawn: list[Plain] = []
    for place, (what, words) in enumerate(_PANELS):
        # In shares of the figure, below its title.
        below, left = 0.58 * (1 - place), 0.53 * place
        x, y = ([0.0, 1.0], [below, below + 0.36]) if narrow else ([left, left + 0.47], [0.0, 0.9])
        ks = axis(colours, size, (0.8, KS[-1] + 0.2), "k, how many tokens", tickvals=KS)
        one_scale = {"matches": "y"} if place else {}
        lost = axis(colours, size, (), "probability lost", showgrid=True, tickformat=".2f", **one_scale)
        layout |= panel_axes(place + 1, ks, lost, x, y)
        layout["annotations"].append(words_at(words, x[0], y[1], size, colours.ink))
        for curve, looks in lines:
            means: tuple[Mean, ...] = getattr(curve, what)
            name, ends = escape(_BASELINES.get(curve.name, curve.name)), [mean.interval for mean in means]
            spread: dict[str, Any] = {
                "type": "data",
                "symmetric": False,
                "thickness": 1,
                "array": [0 if end is None else end[1] - mean.value for mean, end in zip(means, ends, strict=True)],
                "arrayminus": [0 if end is None else mean.value - end[0] for mean, end in zip(means, ends, strict=True)],
            }
            line = scatter(
                x=KS,
                y=[mean.value for mean in means],
                name=name,
                legendgroup=name,
                showlegend=place == 0,
                **on_axes(place + 1),
                **({"error_y": spread} if any(ends) else {}),
                hovertemplate=f"{name}, k = %{{x}}<br>{what} <b>%{{y:.3f}}</b><extra></extra>",
                **looks,
            )
            drawn.append(line)
    return PlainFigure(drawn, layout)


def _lines(curves: Sequence[MeanCurve], colours: Theme) -> list[tuple[MeanCurve, dict[str, Any]]]:
    """The first map is the strongest; lines differ in their marks too."""
    palette = (colours.chosen, colours.accent, colours.literal, colours.broken, colours.hatch)
    lines: list[tuple[MeanCurve, dict[str, Any]]] = []
    for number, curve in enumerate(each for each in curves if each.name not in _BASELINES):
        marks = {"size": 8, "symbol": _SYMBOLS[number % len(_SYMBOLS)]}
        line = {"color": palette[number % len(palette)], "width": 2 if number else 3.5}
        lines.append((curve, {"mode": "lines+markers", "line": line, "marker": marks}))
    dashes = {"occlusion": (colours.ink, "dot"), "random": (colours.muted, "dash")}
    for curve in (each for each in curves if each.name in _BASELINES):
        colour, dash = dashes[curve.name]
        lines.append((curve, {"mode": "lines", "line": {"color": colour, "width": 2, "dash": dash}}))
    return lines
