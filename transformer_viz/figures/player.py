"""The step player: the focus map and the candidates, one frame a step, all in one figure.

Frames are applied in the browser, so stepping costs no round trip.
"""

from typing import Any, NotRequired, TypedDict, Unpack

import plotly.graph_objects as go

from transformer_viz.figures import arrangement, cells
from transformer_viz.figures.attention import bar_traces, bar_words, most_of
from transformer_viz.figures.focus import CoveredFocus, Focus, GuessFocus
from transformer_viz.figures.margins import margins
from transformer_viz.figures.plain import PlainFigure
from transformer_viz.figures.shades import Scale
from transformer_viz.figures.theme import ThemeName, labels, theme_of
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace

COVERED_FROM = 250_000
"""Cells of all frames together from which the map is sent once, under a cover."""


def player(
    trace: Trace,
    kind: Kind = "cross",
    layer: int | None = None,
    head: Head = 0,
    step: int = 0,
    *,
    theme: ThemeName = "light",
    large: bool = False,
    with_answer: bool = True,
    narrow: bool = False,
    scale: Scale = "fixed",
    measure: Attribution | None = None,
) -> go.Figure:
    """The focus head's map with the row of the step outlined, and what could have been written.

    Args:
        trace: the run.
        kind: `encoder`, `decoder` or `cross`.
        layer: from 0; by default the first that the run has.
        head: from 0, or `mean` or `max`.
        step: the step that is drawn first, from 0.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.
        with_answer: ring the true key of each row.
        narrow: the candidates below the map, for a phone, instead of beside it.
        scale: what has the strongest colour: `fixed` is a weight of 1, `head` the head's own largest, `log` is 1 on a
            logarithmic scale that begins at 0.0001.
        measure: of `tv.attribute`, and of this kind: one with a number for each head takes the place of the weights, another
            one stands beside them.

    Raises:
        OptionError: the run has no such kind, layer or head, or the measure is of another run.
    """
    looks: Looks = {"theme": theme, "large": large, "with_answer": with_answer, "narrow": narrow, "scale": scale}
    looks["measure"] = measure
    return plain_player(trace, kind, layer, head, step, **looks).to_plotly()


class Looks(TypedDict):
    """How a player looks; see `player`."""

    theme: ThemeName
    large: bool
    with_answer: bool
    narrow: bool
    scale: NotRequired[Scale]
    measure: NotRequired[Attribution | None]


def plain_player(trace: Trace, kind: Kind, layer: int | None, head: Head, step: int, **looks: Unpack[Looks]) -> PlainFigure:
    """The same as plain data."""
    attention = trace.attentions[kind]
    layer = attention.layers[0] if layer is None else layer
    n_queries, n_keys = len(attention.queries), len(attention.keys)
    is_large = kind != "encoder" and n_queries * n_queries * n_keys >= COVERED_FROM
    focus = focus_of(CoveredFocus if is_large else Focus, trace, kind, layer, head, looks)
    return _figure(focus, step, [focus.frame(t) for t in range(len(trace.rows))])


def plain_guess(trace: Trace, kind: Kind, layer: int, head: Head, step: int, **looks: Unpack[Looks]) -> PlainFigure:
    """The player of a covered run before a step is revealed, as plain data, without frames.

    The rows before the step are drawn, its own is an empty outline, and the candidates are those of the step before.
    """
    return _figure(focus_of(GuessFocus, trace, kind, layer, head, looks), step - 1, [])


def focus_of(drawn_by: type[Focus], trace: Trace, kind: Kind, layer: int, head: Head, looks: Looks) -> Focus:
    """The focus map that looks so, each thing in its place."""
    large, narrow = looks["large"], looks["narrow"]
    size = 17 if large else 13
    focus = drawn_by(trace, kind, layer, head, theme_of(looks["theme"]), size, looks["with_answer"])
    focus.show_measure(looks.get("measure"))
    n_queries, keys = len(trace.attentions[kind].queries), trace.attentions[kind].keys
    below = margins(labels(keys), (), size, upright=cells.is_crowded(keys))["b"]
    if focus.steps:
        place = arrangement.with_candidates(n_queries, below, large=large, narrow=narrow)
    else:
        place = arrangement.alone(n_queries, below, large=large)
    focus.place = arrangement.with_second(place, below, narrow=narrow) if focus.beside is not None else place
    focus.ring = arrangement.ring_width(n_queries, len(keys), focus.place, narrow=narrow)
    focus.scale = looks.get("scale", "fixed")
    return focus


def _figure(focus: Focus, step: int, frames: list[dict[str, Any]]) -> PlainFigure:
    """A focus map as it is at a step, and what other steps change in it."""
    traces = focus.traces()
    for drawn, update in zip(traces, focus.updates(step), strict=True):
        drawn.update(update)
    return PlainFigure([*traces, *bar_traces(focus.scale)], focus.layout(step), frames)


def scale_words(trace: Trace, kind: Kind, layer: int, head: Head, scale: Scale, measure: Attribution | None) -> str:
    """What the bars of colours say, where there is no room for them."""
    focus = Focus(trace, kind, layer, head, theme_of("light"), 13, with_answer=False)
    focus.show_measure(measure)
    words = bar_words(scale, most_of(focus.weights, focus.reasons), focus.of)
    return words if focus.beside is None else f"{words}; {focus.beside.scale_words()}"
