"""Which figure of a run is meant, by its name: `player`, `attention`, `mosaic`, `masks`, `search`, or one that was added."""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, NamedTuple

from transformer_viz import figures
from transformer_viz.analysis.mask_parts import mask_parts
from transformer_viz.errors import OptionError, listed
from transformer_viz.export.content import view
from transformer_viz.figures.shades import SCALES, Scale
from transformer_viz.figures.theme import ThemeName
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.trace import Trace

WIDTH = 1200
"""Pixels of a picture, and what is expected of a page."""


class Place(NamedTuple):
    """Where in a run, by numbers from 0; what is None is chosen as the page chooses it."""

    kind: Kind | None = None
    layer: int | None = None
    head: Head | None = None
    step: int | None = None


def figure_of(
    trace: Trace,
    what: str,
    place: Place,
    *,
    theme: ThemeName = "light",
    large: bool = False,
    with_answer: bool = True,
    colours: Scale = "fixed",
) -> Any:
    """A figure of the run.

    Args:
        trace: the run.
        what: `player` is one step's map with its candidates, `attention` a whole map, `mosaic` all heads of a kind, `masks`
            every mask by its reasons, `search` the tree of a beam search; and any other figure of a run alone (`WHATS`).
        place: the head and the step that are shown.
        theme: `light` or `dark`.
        large: bigger letters.
        with_answer: mark true keys.
        colours: what has the strongest colour: `fixed` is a weight of 1, `head` a head's own largest, `log` is logarithmic.

    Raises:
        OptionError: the run has no such thing, or an option has an impossible value.
    """
    looks: dict[str, Any] = {"theme": theme, "large": large}
    if what not in WHATS:
        raise OptionError(f"what={what!r} is not known; choose one of {listed(WHATS)}")
    if theme not in ("light", "dark"):
        raise OptionError(f"theme {theme!r} is not possible for a figure; choose one of light, dark")
    check_colours(colours)
    drawn, known = WHATS[what], {**looks, "with_answer": with_answer, "scale": colours}
    parameters = signature(drawn).parameters
    if not _PLACES.isdisjoint(parameters):
        known |= vars(view(trace, *place))
    if place.layer is not None or place.head is not None:
        known["focus"] = (known.get("layer"), known.get("head"))
    return drawn(trace, **{name: value for name, value in known.items() if name in parameters})


def check_colours(colours: str) -> None:
    """Raises an OptionError where there is no such choice of colours."""
    if colours not in SCALES:
        raise OptionError(f"colours={colours!r} is not possible; choose one of {listed(SCALES)}")


def _mosaic(
    trace: Trace,
    kind: Kind,
    focus: tuple[int, Head] | None = None,
    *,
    theme: ThemeName = "light",
    large: bool = False,
    scale: Scale = "fixed",
) -> Any:
    """Tiles about as high as their cells ask for on a page of the usual width."""
    n_layers, n_heads, n_queries, n_keys = trace.attentions[kind].weights.shape
    height = 28 + n_layers * round(min(300, max(70, WIDTH / n_heads * min(1.5, n_queries / n_keys))))
    return figures.mosaic(trace, kind, focus, theme=theme, large=large, height=height, scale=scale)


def _masks(trace: Trace, *, theme: ThemeName = "light", large: bool = False) -> Any:
    return figures.mask_grid([mask_parts(trace)], [trace.source], columns=3, theme=theme, large=large)


_PLACES = frozenset({"kind", "layer", "head", "step"})
_GIVEN = {*_PLACES, "theme", "large", "with_answer"}
_OURS: dict[str, Callable[..., Any]] = {
    "player": figures.player,
    "attention": figures.attention,
    "mosaic": _mosaic,
    "masks": _masks,
    "search": figures.search_tree,
}


def _is_of_a_run(figure: Callable[..., Any]) -> bool:
    """Whether it can be drawn of a `trace` and what a place and its looks say."""
    parameters = list(signature(figure).parameters.values())
    return parameters[0].name == "trace" and all(p.name in _GIVEN or p.default is not Parameter.empty for p in parameters[1:])


WHATS: dict[str, Callable[..., Any]] = {
    **_OURS,
    **{name: figure for name, figure in figures.FOUND.items() if name not in figures.__all__ and _is_of_a_run(figure)},
}
"""Every figure of a run by its name: these, and what was added to the folder of figures."""
