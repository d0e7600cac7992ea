"""Figures as files: pictures drawn by a browser of the system, and where a page finds plotly.js on the network."""

import base64
import hashlib
import importlib.util
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Literal, get_args

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs, get_plotlyjs_version

from transformer_viz.errors import ExportError, OptionError, join_names

PictureFormat = Literal["png", "svg", "pdf"]
PICTURE_FORMATS: tuple[PictureFormat, ...] = get_args(PictureFormat)
LARGEST_SIDE = 8000
_INSTEAD = "An HTML file needs neither."
# A browser takes 300 MB; two at once help nobody.
_ONE_AT_A_TIME = threading.Lock()


@cache
def plotly_cdn() -> tuple[str, str]:
    """The address of the whole plotly.js at Plotly's makers, and its hash, by which a browser makes sure of it."""
    digest = base64.b64encode(hashlib.sha256(get_plotlyjs().encode()).digest()).decode()
    return f"https://cdn.plot.ly/plotly-{get_plotlyjs_version()}.min.js", f"sha256-{digest}"


def picture_of(figure: go.Figure, format: str, width: int, height: int, scale: float) -> bytes:
    """The figure as PNG, SVG or PDF; a headless browser of the system draws it, which takes seconds.

    Args:
        figure: what to draw; frames are left out.
        format: `png`, `svg` or `pdf`.
        width: in pixels.
        height: in pixels.
        scale: pixels of the PNG for each pixel of the figure.

    Raises:
        OptionError: no such format, or a size that no picture has.
        ExportError: kaleido or a browser is missing, or the browser failed; the message says what to install.
    """
    if format not in PICTURE_FORMATS:
        raise OptionError(f"format {format!r} is no picture; choose one of {join_names(PICTURE_FORMATS)}")
    if not all(1 <= side * scale <= LARGEST_SIDE for side in (width, height)):
        raise OptionError(f"{width} × {height} at scale {scale:g} is not possible; each side is 1 to {LARGEST_SIDE} pixels")
    still = {key: value for key, value in figure.to_dict().items() if key != "frames"}
    options = {"format": format, "width": width, "height": height, "scale": scale}
    with drawing_browser(format):
        import kaleido

        # MathJax would be fetched from the network, and would take a typed $x$ for a formula.
        return kaleido.calc_fig_sync(still, opts=options, kopts={"mathjax": False, "timeout": 60})


@contextmanager
def drawing_browser(format: str) -> Generator[None]:
    """A turn with the browser that draws pictures.

    Raises:
        ExportError: kaleido or a browser is missing, or the browser failed; the message says what to install.
    """
    if importlib.util.find_spec("kaleido") is None:
        raise ExportError(f"A {format.upper()} needs kaleido and a Chrome or Chromium: pip install kaleido. {_INSTEAD}")

    from kaleido.errors import ChromeNotFoundError

    try:
        with _ONE_AT_A_TIME:
            yield
    except ChromeNotFoundError:
        raise ExportError(
            f"A {format.upper()} needs a Chrome or Chromium (Debian: apt install chromium; BROWSER_PATH names one "
            f"elsewhere). {_INSTEAD}"
        ) from None
    except Exception as error:
        words = " ".join(str(error).split())[:200]
        raise ExportError(f"The browser that draws pictures failed ({type(error).__name__}: {words}). {_INSTEAD}") from error
