"""A run inside a notebook: the page in a frame of its own, so that neither's scripts and styles reach the other."""

import html as markup

from transformer_viz.export.content import PageTheme
from transformer_viz.export.pages import PlotlyJs, html
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.trace import Trace

LARGEST = 8 * 2**20
"""Bytes of weights up to which a run shows itself; a larger one would make the notebook slow."""
HEIGHT = 820


def frame(
    trace: Trace,
    *,
    height: int = HEIGHT,
    plotlyjs: PlotlyJs = "packed",
    kind: Kind | None = None,
    layer: int | None = None,
    head: Head | None = None,
    step: int | None = None,
    theme: PageTheme = "auto",
    large: bool = False,
    with_answer: bool = True,
) -> str:
    """The page as an HTML element for a notebook.

    The frame is a place of its own without any right but that to run scripts; it asks nothing of the network.

    Args:
        trace: the run.
        height: of the frame in pixels.
        plotlyjs: as in `html`; compressed it takes 2 MB of the notebook for each run that is shown.
        kind: as all that follow in `html`: what the page opens with.
        layer: from 0.
        head: from 0, or `mean` or `max`.
        step: from 0.
        theme: `light`, `dark` or `auto`.
        large: bigger letters, for a projector.
        with_answer: mark true keys and wrong letters.

    Raises:
        OptionError: the run has no such kind, layer, head or step, or an option has an impossible value.
    """
    place = (kind, layer, head, step)
    page = html(trace, *place, plotlyjs=plotlyjs, theme=theme, large=large, with_answer=with_answer)
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
