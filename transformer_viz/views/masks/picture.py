"""The pictures of Masks: one run with its masks beside its weights, or two and what has changed between them.

What they show is the browser's: the page hears of it, and computes what a change needs.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from transformer_viz.analysis.query_rows import real_queries
from transformer_viz.export.content import picture_title
from transformer_viz.figures.difference_mosaic import difference_mosaic
from transformer_viz.figures.figure_data import plain
from transformer_viz.figures.page_templates import change_template, difference_dark_colours
from transformer_viz.figures.theme import Style
from transformer_viz.language import say
from transformer_viz.terms import Kind, kind_words
from transformer_viz.trace.trace import Trace
from transformer_viz.views.cache.model_list import identity
from transformer_viz.views.components import deep_mosaic, viewer
from transformer_viz.views.components.measured import NOTHING
from transformer_viz.views.masks.setup import Setup
from transformer_viz.views.state import display_options, focus, levels

PAGE = "masks"
_ON_SCREEN, _HIGHEST = 380, 560
"""Pixels of a mask: what a window of 900 has left below the controls, and what more rows may take to stay legible."""


def show_one(setup: Setup, trace: Trace) -> None:
    """Draws a sentence's masks beside its weights."""
    _start(setup, trace, "one", len(trace.rows))
    looks = viewer.Looks(_parts(trace), with_candidates=False, **_small_maps(trace))
    _show(trace, looks, masks={kind: height(trace, kind) for kind in trace.kinds})


def show_change(setup: Setup, before: Trace, after: Trace, name: str, on_cell: Callable[[Any], None] | None = None) -> None:
    """Draws a run before and after a change, and the difference.

    Args:
        setup: of the page.
        before: the run as it was.
        after: the changed run, whose head is in focus.
        name: tells these from the page's other runs of the sentence.
        on_cell: is called with a pressed cell of the mask, which stands above then.
    """
    _start(setup, after, name, max(len(before.rows), len(after.rows), 1))
    kinds = tuple(kind for kind in after.kinds if kind in before.kinds)
    beside = viewer.Beside(
        trace=before,
        run=f"{st.session_state.run}-before",
        kinds=kinds,
        parts=_parts(before),
        difference=lambda: _difference(before, after, kinds),
        key=("change", id(before)),
        is_change=True,
    )
    looks = viewer.Looks(_parts(after), maps={}, maps_key="none", with_candidates=False)
    if on_cell is None:
        _show(after, looks, beside=beside)
    else:
        _show(after, looks, beside=beside, masks={kind: height(after, kind) for kind in kinds}, on_cell=on_cell)


def height(trace: Trace, kind: Kind) -> int:
    """Pixels of a mask, and of what it changes beside it."""
    n_rows = len(trace.attentions[kind].queries)
    return max(min(_ON_SCREEN, 170 + 30 * n_rows), min(_HIGHEST, 170 + 12 * n_rows))


def _start(setup: Setup, trace: Trace, name: str, n_steps: int) -> None:
    """The step and the pin of a sentence: with another change they stay. At first it is the last step that is no padding."""
    real = real_queries(trace, "decoder" if trace.writes else "encoder").nonzero()[0]
    last = min(int(real[-1]), n_steps - 1) if len(real) else n_steps - 1
    told = repr((identity(setup.model), setup.typed.sources[setup.sentence], setup.typed.targets[setup.sentence], name))
    focus.start_run(trace, f"masks-{hashlib.sha256(told.encode()).hexdigest()[:12]}", range(n_steps), last)


def _show(trace: Trace, looks: viewer.Looks, **more: Any) -> None:
    chosen = display_options.current()
    viewer.show(trace, chosen, looks, said=NOTHING.step_words, on_way=lambda _: None, page=PAGE, **more)


def _parts(trace: Trace) -> dict[str, Any]:
    """The page's words on a run."""
    quiet: dict[str, Any] = {"remark": [], "ways": {}, "unfolds": False, "isBrief": False, "isStage": False, "plays": False}
    return {"saved": picture_title(trace), "hasLines": levels.is_all(), **quiet}


def _small_maps(trace: Trace) -> dict[str, Any]:
    """The small maps of all heads, unless there are too many for one picture."""
    return {"maps": {}, "maps_key": "none"} if deep_mosaic.is_deep(trace) else {}


def _difference(before: Trace, after: Trace, kinds: tuple[Kind, ...]) -> Mapping[str, Any]:
    """The difference as the browser fetches it, in the colours of a light page."""
    large = display_options.current().is_large
    templates = {kind: change_template(before, after, kind, height=height(after, kind), large=large) for kind in kinds}
    mosaics: dict[Kind, Any] = dict.fromkeys(kinds)
    for kind in kinds if not deep_mosaic.is_deep(after) else ():
        figure = plain(difference_mosaic)(after, before, kind, names=("after", "before"), style=Style("light", large))
        mosaics[kind] = {"data": figure.data, "layout": figure.layout}
    words = {kind: say("{kind} of the focus head, after the change minus before it", kind=kind_words(kind)) for kind in kinds}
    return {"kinds": templates, "mosaics": mosaics, "words": words, "dark": difference_dark_colours()}
