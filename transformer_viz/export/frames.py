"""A run inside a notebook: the page in a frame of its own, so that neither's scripts and styles reach the other."""

import html as markup
from typing import Unpack

from transformer_viz.export.options import DEFAULTS, PlotlyJs, ShownOptions
from transformer_viz.export.pages import html
from transformer_viz.keywords import with_keywords
from transformer_viz.trace.trace import Trace

LARGEST = 8 * 2**20
"""Bytes of weights up to which a run shows itself; a larger one would make the notebook slow."""
HEIGHT = 820


@with_keywords(ShownOptions, DEFAULTS)
def frame(trace: Trace, *, height: int = HEIGHT, plotlyjs: PlotlyJs = "packed", **options: Unpack[ShownOptions]) -> str:
    """The page as an HTML element for a notebook.

    The frame is a place of its own without any right but that to run scripts; it asks nothing of the network.

    Args:
        trace: the run.
        height: of the frame in pixels.
        plotlyjs: as in `html`; compressed it takes 2 MB of the notebook for each run that is shown.
        options: as in `html`: what the page opens with, and how it looks.

    Raises:
        OptionError: the run has no such kind, layer, head or step, or an option has an impossible value.
    """
    page = html(trace, plotlyjs=plotlyjs, **options)
    # ASCII alone: whatever a notebook takes the encoding for, the scripts keep the hashes by which they may run.
    inner = markup.escape(page).encode("ascii", "xmlcharrefreplace").decode()
    return (
        f'<iframe srcdoc="{inner}" sandbox="allow-scripts" title="Transformer Viz: one run, step by step" '
        f'style="width: 100%; height: {int(height)}px; border: 0;" loading="lazy"></iframe>'
    )


def shown(trace: Trace) -> str | None:
    """What a Trace shows of itself in a notebook; None, which leaves its one line of text, for a large or empty one."""
    size = sum(attention.weights.nbytes for attention in trace.attentions.values())
    return frame(trace) if 0 < size <= LARGEST else None
