"""A run, or any figure, as PNG, SVG or PDF."""

from typing import Any, Unpack

from transformer_viz.export.drawings import figure_of
from transformer_viz.export.options import DEFAULTS, SCALE, WIDTH, ShownOptions
from transformer_viz.figures import files
from transformer_viz.keywords import with_keywords
from transformer_viz.trace.trace import Trace

HEIGHT = 480


@with_keywords(ShownOptions, DEFAULTS)
def picture(
    shown: Any,
    format: str = "png",
    *,
    width: int = WIDTH,
    height: int | None = None,
    scale: float = SCALE,
    what: str = "player",
    **options: Unpack[ShownOptions],
) -> bytes:
    """A picture's bytes. A Chrome or Chromium of the system draws it, which takes about three seconds.

    Args:
        shown: a figure from `transformer_viz.figures`, or a Trace.
        format: `png`, `svg` or `pdf`.
        width: in pixels of the figure.
        height: likewise; by default what the figure asks for.
        scale: pixels of a PNG for each of those.
        what: of a Trace: `player` is one step's map with its candidates, `attention` a whole map, `mosaic` all heads of a kind,
            `masks` every mask by its reasons, `search` the tree of a beam search.
        options: of a Trace, as in `html`; the theme `auto` is `light`.

    Raises:
        OptionError: an option has an impossible value.
        ExportError: kaleido or a browser is missing; the message says what to install.
    """
    figure = figure_of(shown, what, **options) if isinstance(shown, Trace) else shown
    return files.picture_of(figure, format, width, height or int(figure.layout.height or HEIGHT), scale)
