"""Draws a figure of a run by its name: `player`, `attention`, `row`, `mosaic`, `masks`, `search`, or one that was added."""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, Unpack

from transformer_viz import figures
from transformer_viz.addresses import read_map
from transformer_viz.analysis.mask_parts import mask_parts
from transformer_viz.errors import OptionError, join_names
from transformer_viz.export.content import DEFAULTS, WIDTH, ShownOptions, check_colours, view
from transformer_viz.figures.colour_scale import Scale
from transformer_viz.figures.theme import Style
from transformer_viz.language import speaking
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.trace import Trace

_PLACES = ("kind", "head", "step")


def figure_of(trace: Trace, what: str = "player", **shown: Unpack[ShownOptions]) -> Any:
    """A figure of the run.

    Args:
        trace: the run.
        what: `player` is one step's map with its candidates, `attention` a whole map, `row` the weights of one step as bars,
            `mosaic` all heads of a kind, `masks` every mask by its reasons, `search` the tree of a beam search; and any other
            figure of a run alone (`WHATS`).
        shown: keywords of `html`; the theme `auto` is `light`.

    Raises:
        OptionError: the run has no such thing, or an option has an impossible value.
    """
    if what not in WHATS:
        raise OptionError(f"what={what!r} is not known; choose one of {join_names(WHATS)}")
    with speaking(shown.pop("language", None)):
        return _drawn(trace, what, shown)


def _drawn(trace: Trace, what: str, shown: ShownOptions) -> Any:
    options: dict[str, Any] = {**DEFAULTS, **shown}
    check_colours(options["colours"])
    style = Style("light" if options["theme"] == "auto" else options["theme"], options["large"])
    known = {"style": style, "with_answer": options["with_answer"], "scale": options["colours"]}
    drawn = WHATS[what]
    parameters = signature(drawn).parameters
    if not parameters.keys().isdisjoint(_PLACES):
        now = view(trace, options.get("head"), options.get("step"))
        known |= {"kind": now.kind, "head": now.address, "step": now.step}
        if options.get("head") is not None and read_map(options["head"])[0].layer is not None:
            known["focus"] = (now.layer, now.head)
    return drawn(trace, **{name: value for name, value in known.items() if name in parameters})


def _mosaic(
    trace: Trace, kind: Kind, focus: tuple[int, Head] | None = None, *, scale: Scale = "fixed", style: Style = Style()
) -> Any:
    """Tiles about as high as their cells ask for on a page of the usual width."""
    n_layers, n_heads, n_queries, n_keys = trace.attentions[kind].weights.shape
    height = 28 + n_layers * round(min(300, max(70, WIDTH / n_heads * min(1.5, n_queries / n_keys))))
    return figures.mosaic(trace, kind, focus, height=height, scale=scale, style=style)


def _masks(trace: Trace, *, style: Style = Style()) -> Any:
    return figures.mask_grid([mask_parts(trace)], [trace.source], columns=3, style=style)


_GIVEN = {*_PLACES, "style", "with_answer"}
_OURS: dict[str, Callable[..., Any]] = {
    "player": figures.player,
    "attention": figures.attention,
    "row": figures.row,
    "mosaic": _mosaic,
    "masks": _masks,
    "search": figures.search_tree,
}


def _is_of_a_run(figure: Callable[..., Any]) -> bool:
    """Tells whether a figure's function needs no arguments but a trace, a place in it and a style."""
    parameters = list(signature(figure).parameters.values())
    return parameters[0].name == "trace" and all(p.name in _GIVEN or p.default is not Parameter.empty for p in parameters[1:])


WHATS: dict[str, Callable[..., Any]] = {
    **_OURS,
    **{name: figure for name, figure in figures.FOUND.items() if name not in figures.__all__ and _is_of_a_run(figure)},
}
"""Every figure of a run by its name: these, and what was added to the folder of figures."""
