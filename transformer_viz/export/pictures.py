"""A run, or any figure, as PNG, SVG or PDF."""

from typing import Any

from transformer_viz.export.drawings import WIDTH, Place, figure_of
from transformer_viz.figures import files
from transformer_viz.figures.shades import Scale
from transformer_viz.figures.theme import ThemeName
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.trace import Trace

HEIGHT, SCALE = 480, 2.0


def picture(
    shown: Any,
    format: str = "png",
    *,
    width: int = WIDTH,
    height: int | None = None,
    scale: float = SCALE,
    what: str = "player",
    kind: Kind | None = None,
    layer: int | None = None,
    head: Head | None = None,
    step: int | None = None,
    theme: ThemeName = "light",
    large: bool = False,
    with_answer: bool = True,
    colours: Scale = "fixed",
) -> bytes:
    """A picture's bytes. A Chrome or Chromium of the system draws it, which takes about three seconds.

    Args:
        shown: a figure from `transformer_viz.figures`, or a Trace.
        format: `png`, `svg` or `pdf`.
        width: in pixels of the figure.
        height: likewise; by default what the figure asks for.
        scale: pixels of a PNG for each of those.
        what: of a Trace, as all that follow: `player` is one step's map with its candidates, `attention` a whole map,
            `mosaic` all heads of a kind, `masks` every mask by its reasons, `search` the tree of a beam search.
        kind: `encoder`, `decoder` or `cross`; what is not given is chosen as the page of `html` chooses it.
        layer: from 0.
        head: from 0, or `mean` or `max`.
        step: from 0.
        theme: `light` or `dark`.
        large: bigger letters.
        with_answer: mark true keys.
        colours: what has the strongest colour: `fixed` is a weight of 1, `head` a head's own largest, `log` is logarithmic.

    Raises:
        OptionError: an option has an impossible value.
        ExportError: kaleido or a browser is missing; the message says what to install.
    """
    figure = shown
    if isinstance(shown, Trace):
        place = Place(kind, layer, head, step)
        figure = figure_of(shown, what, place, theme=theme, large=large, with_answer=with_answer, colours=colours)
    return files.picture_of(figure, format, width, height or int(figure.layout.height or HEIGHT), scale)
