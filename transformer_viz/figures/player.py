"""The step player: the focus map and the candidates, one frame a step, all in one figure.

Frames are applied in the browser, so stepping costs no round trip.
"""

from typing import Any

from transformer_viz.figures.attention import bar_traces, bar_words, most_of
from transformer_viz.figures.colour_scale import Scale
from transformer_viz.figures.figure_data import PlainFigure, plotly_figure
from transformer_viz.figures.focus import CoveredFocus, Focus, GuessFocus
from transformer_viz.figures.theme import Style
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace

COVERED_FROM = 250_000
"""With more cells than this in all frames together, the map is sent once, under a cover."""


@plotly_figure
def player(
    trace: Trace,
    kind: Kind = "cross",
    layer: int | None = None,
    head: Head = 0,
    step: int = 0,
    *,
    with_answer: bool = True,
    scale: Scale = "fixed",
    measure: Attribution | None = None,
    style: Style = Style(),
) -> PlainFigure:
    """Draws the step player: the map of one head with the row of the step outlined, and the step's candidates.

    Args:
        trace: the run.
        kind: `encoder`, `decoder` or `cross`.
        layer: from 0; by default the first that the run has.
        head: from 0, or `mean` or `max`.
        step: the step that is drawn first, from 0.
        with_answer: ring the true key of each row.
        scale: what has the strongest colour: with `fixed` a weight of 1, with `head` the head's largest weight, with `log` 1 on
            a logarithmic scale that begins at 0.0001.
        measure: a result of `tv.attribute` of this kind. With a number for each head it replaces the weights; otherwise it is
            drawn as a second map.
        style: theme and size; the candidates of a narrow figure stand below the map instead of beside it.

    Raises:
        OptionError: the run has no such kind, layer or head, or the measure is of another run.
    """
    attention = trace.attentions[kind]
    layer = attention.layers[0] if layer is None else layer
    n_queries, n_keys = len(attention.queries), len(attention.keys)
    is_large = kind != "encoder" and n_queries * n_queries * n_keys >= COVERED_FROM
    looks: dict[str, Any] = {"with_answer": with_answer, "scale": scale, "measure": measure}
    focus = (CoveredFocus if is_large else Focus)(trace, kind, layer, head, style, **looks)
    return _figure(focus, step, [focus.frame(t) for t in range(len(trace.rows))])


def guess(trace: Trace, kind: Kind, layer: int, head: Head, step: int, scale: Scale, style: Style) -> PlainFigure:
    """The player of a covered run before a step is revealed, without frames.

    The rows before the step are drawn, its own is an empty outline, and the candidates are those of the step before.
    """
    return _figure(GuessFocus(trace, kind, layer, head, style, with_answer=False, scale=scale), step - 1, [])


def _figure(focus: Focus, step: int, frames: list[dict[str, Any]]) -> PlainFigure:
    """A focus map as it is at a step, and what other steps change in it."""
    traces = [{**drawn, **update} for drawn, update in zip(focus.traces(), focus.updates(step), strict=True)]
    return PlainFigure([*traces, *bar_traces(focus.scale)], focus.layout(step), frames)


def scale_words(trace: Trace, kind: Kind, layer: int, head: Head, scale: Scale, measure: Attribution | None) -> str:
    """The scales of both maps in words, for figures without room for colour bars."""
    focus = Focus(trace, kind, layer, head, Style(), with_answer=False, measure=measure)
    words = bar_words(scale, most_of(focus.weights, focus.reasons), focus.of)
    return words if focus.beside is None else f"{words}; {focus.beside.scale_words()}"
