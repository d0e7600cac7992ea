"""Which figure of a run is meant: `player`, `attention`, `mosaic`, `masks` or `search`."""

from typing import Any, Literal, NamedTuple, get_args

from transformer_viz import figures
from transformer_viz.analysis.heads import Head, n_layers_heads
from transformer_viz.analysis.mask_parts import mask_parts
from transformer_viz.errors import OptionError, listed
from transformer_viz.export.content import view
from transformer_viz.figures.theme import ThemeName
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace

What = Literal["player", "attention", "mosaic", "masks", "search"]
WIDTH = 1200
"""Pixels of a picture, and what is expected of a page."""
WHATS: tuple[What, ...] = get_args(What)


class Place(NamedTuple):
    """Where in a run, by numbers from 0; what is None is chosen as the page chooses it."""

    kind: Kind | None = None
    layer: int | None = None
    head: Head | None = None
    step: int | None = None


def figure_of(
    trace: Trace,
    what: What,
    place: Place,
    *,
    theme: ThemeName = "light",
    large: bool = False,
    with_answer: bool = True,
) -> Any:
    """A figure of the run.

    Args:
        trace: the run.
        what: `player` is one step's map with its candidates, `attention` a whole map, `mosaic` all heads of a kind, `masks`
            every mask by its reasons, `search` the tree of a beam search.
        place: the head and the step that are shown.
        theme: `light` or `dark`.
        large: bigger letters.
        with_answer: mark true keys.

    Raises:
        OptionError: the run has no such thing, or an option has an impossible value.
    """
    looks: dict[str, Any] = {"theme": theme, "large": large}
    if what not in WHATS:
        raise OptionError(f"what={what!r} is not known; choose one of {listed(WHATS)}")
    if theme not in ("light", "dark"):
        raise OptionError(f"theme {theme!r} is not possible for a figure; choose one of light, dark")
    if what == "search":
        return figures.search_tree(trace, **looks)
    now = view(trace, *place)
    if what == "masks":
        return figures.mask_grid([mask_parts(trace)], [trace.source], columns=3, **looks)
    if what == "mosaic":
        is_asked = place.layer is not None or place.head is not None
        tile = (now.layer, now.head) if is_asked else None
        return figures.mosaic(trace, now.kind, tile, height=_mosaic_height(trace, now.kind), **looks)
    if what == "attention":
        return figures.attention(trace, now.kind, now.layer, now.head, **looks)
    return figures.player(trace, now.kind, now.layer, now.head, now.step, with_answer=with_answer, **looks)


def _mosaic_height(trace: Trace, kind: Kind) -> int:
    """Tiles about as high as their cells ask for on a page of the usual width."""
    n_layers, n_heads = n_layers_heads(trace, kind)
    share = len(trace.queries(kind)) / max(1, len(trace.keys(kind)))
    return 28 + n_layers * round(min(300, max(70, WIDTH / n_heads * min(1.5, share))))
