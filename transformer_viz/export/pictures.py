"""A run, or any figure, as PNG, SVG or PDF."""

from typing import Any

from transformer_viz.export.drawings import WIDTH, figure_of
from transformer_viz.figures import files
from transformer_viz.trace.trace import Trace

HEIGHT, SCALE = 480, 2.0


def picture(
    shown: Any, format: str = "png", *, width: int = WIDTH, height: int | None = None, scale: float = SCALE, **options: Any
) -> bytes:
    """A picture's bytes. A Chrome or Chromium of the system draws it, which takes about three seconds.

    Args:
        shown: a figure from `transformer_viz.figures`, or a Trace.
        format: `png`, `svg` or `pdf`.
        width: in pixels of the figure.
        height: likewise; by default what the figure asks for.
        scale: pixels of a PNG for each of those.
        options: of a Trace, which figure: the keywords of `figure_of` (`what`, `kind`, `layer`, `head`, `step`, `theme`, …).

    Raises:
        OptionError: an option has an impossible value.
        ExportError: kaleido or a browser is missing; the message says what to install.
    """
    figure = figure_of(shown, **options) if isinstance(shown, Trace) else shown
    return files.picture_of(figure, format, width, height or int(figure.layout.height or HEIGHT), scale)
