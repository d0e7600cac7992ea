"""One attention map, large: `figures.attention(trace, "cross.1.1")`."""

from typing import Any

import numpy as np

from transformer_viz import edits
from transformer_viz.addresses import AttentionAddress, find_map
from transformer_viz.analysis.word_pooling import kind_title
from transformer_viz.figures import cells, colour_scale
from transformer_viz.figures.colour_scale import WEIGHTS, Quantity, Scale
from transformer_viz.figures.figure_data import Plain, PlainFigure, plotly_figure, scatter
from transformer_viz.figures.parts import colour_axis
from transformer_viz.figures.theme import Style, Theme, base_layout
from transformer_viz.language import later, say
from transformer_viz.terms import head_title
from transformer_viz.trace.trace import Trace

SWITCHED_OFF = later("Switched off: its output is 0; its weights are computed as before.")
_FADED = 0.35
"""Opacity of the map of a head that is switched off."""


@plotly_figure
def attention(
    trace: Trace,
    head: str | AttentionAddress,
    *,
    scale: Scale = "fixed",
    style: Style = Style(),
) -> PlainFigure:
    """Draws the map of one head: rows are queries, row 0 on top; columns are keys; colours go from 0 to 1. The map of a head
    that an edit of the run switched off is struck out.

    Args:
        trace: the run.
        head: a head, such as `cross.2.3`, or all heads of a layer as one, `cross.2.mean` or `cross.2.max`; of a kind or a layer
            alone, such as `cross`, its first head.
        scale: what has the strongest colour: with `fixed` a weight of 1, with `head` the head's largest weight, with `log` 1 on
            a logarithmic scale that begins at 0.0001.
        style: theme and size, such as `tv.figures.Style("dark", large=True)`.

    Returns:
        A Plotly figure, which a notebook shows; `figure.write_html("head.html")` and the like are Plotly's.

    Raises:
        OptionError: the run has no such kind, layer or head.

    Example:
        >>> import transformer_viz as tv
        >>> trace = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "hello")
        >>> figure = tv.figures.attention(trace, "cross.2.3", style=tv.figures.Style("dark"))
        >>> figure.layout.title.text
        'cross-attention, layer 2 head 3'
    """
    colours, size = style.colours, style.size
    kind, layer, number = find_map(head, trace.grid)
    attention = trace.attentions[kind]
    weights, reasons = attention.head(layer, number), attention.head_reasons(layer, number)
    columns, rows = cells.token_axes(trace, kind, colours, size)
    is_off = edits.is_off(trace.edits, kind, layer, number)
    title = say("{attention}, {head}", attention=kind_title(trace, kind), head=head_title(layer, number))
    traces = map_traces(weights, reasons, colours)
    # From corner to corner; y goes from 0 at the bottom to 1 at the top.
    stroke = {"type": "line", "xref": "x domain", "yref": "y domain", "x0": 0, "x1": 1}
    strokes = [{**stroke, "y0": y, "y1": 1 - y, "line": {"color": colours.ink, "width": 2}} for y in (0, 1)]
    return PlainFigure(
        [*([{**drawn, "opacity": _FADED} for drawn in traces] if is_off else traces), *bar_traces(scale)],
        {
            **base_layout(colours, size),
            **colour_axes(colours, size, scale=scale, most=most_of(weights, reasons)),
            "title": {"text": title + (f"<br>{say(SWITCHED_OFF)}" if is_off else ""), "font": {"size": size + 2}},
            "xaxis": columns,
            "yaxis": rows,
            "height": 160 + max(240, 26 * len(weights)),
            "margin": {"t": 72 if is_off else 48, "l": 8, "r": 8, "b": 8},
            **({"shapes": strokes} if is_off else {}),
        },
    )


def map_traces(weights: np.ndarray, reasons: np.ndarray, theme: Theme, word: str = WEIGHTS.word) -> list[Plain]:
    """The traces of a map: weights (or what `of` names) on the shared colour axis, masked cells by reason, and hatching."""
    masked = reasons > 0
    grey = [cells.masked_trace(reasons, code, theme) for code in cells.codes_in(reasons)]
    hatch = [cells.hatch_trace(masked, theme)] if masked.any() else []
    return [cells.number_cells(cells.visible(weights, masked), say(word), coloraxis="coloraxis"), *grey, *hatch]


def colour_axes(
    theme: Theme,
    size: int,
    x: float = 1.01,
    *,
    scale: Scale = "fixed",
    most: float = 1.0,
    shows: bool = True,
    of: Quantity = WEIGHTS,
) -> dict[str, Any]:
    """The colours of a map of weights, or `of` something else, with a thin bar at `x` (share of the figure's width), which says
    the scale; `most` is the head's largest number. A logarithmic bar has an axis of its own: a map's is one of its numbers."""
    top = most if scale == "head" else of.full
    bar: dict[str, Any] = {"x": x, "len": 0.6, "thickness": 10, "shows": shows}
    if scale == "log":
        first, *others = (f"{of.full * 10.0**decade:.2g}" for decade in range(-4, 1))
        bar |= {
            "title": say("{word} (log scale)", word=say(of.word)),
            "tickvals": [-4, -3, -2, -1, 0],
            "ticktext": [f"≤ {first}", *others],
        }
        colours = {"cmin": 0, "cmax": top, "colorscale": colour_scale.stops(theme, scale), "showscale": False}
        return {"coloraxis": colours, "coloraxis2": colour_axis(theme, size, (-4, 0), **bar)}
    names = ("0", "0.5", "1") if scale == "fixed" and top == 1 else ("0", f"{top / 2:.2g}", f"{top:.2g}")
    title = say(of.word) if scale == "fixed" else say("{word} (to maximum)", word=say(of.word))
    return {"coloraxis": colour_axis(theme, size, (0, top), names, title=title, **bar)}


def bar_words(scale: Scale, most: float, of: Quantity = WEIGHTS) -> str:
    """The scale in words, for figures without room for the bar of `colour_axes`."""
    ends = {
        "fixed": say("0 to {full:.2g}", full=of.full),
        "head": say("0 to {most:.2g}, this head's maximum", most=most),
        "log": say("{full:.2g} to {full2:.2g}, logarithmic", full=of.full / 10000.0, full2=of.full),
    }
    return say("colour = {word}, {ends}", word=say(of.word), ends=ends[scale])


def bar_traces(scale: Scale) -> list[Plain]:
    """An empty trace for the logarithmic bar, since Plotly draws no colour bar without a trace that uses its colours."""
    marker = {"color": [0], "coloraxis": "coloraxis2"}
    return [scatter(x=[None], y=[None], mode="markers", marker=marker, hoverinfo="skip")] if scale == "log" else []


def most_of(weights: np.ndarray, reasons: np.ndarray) -> float:
    """A head's largest weight, or 1 where it has none."""
    return float(np.where((reasons > 0) | np.isnan(weights), 0, weights).max(initial=0)) or 1.0
