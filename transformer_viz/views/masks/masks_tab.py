"""Every mask of the batch, or of one sentence, by its reasons."""

import streamlit as st

from transformer_viz import figures
from transformer_viz.analysis.mask_parts import MaskPart, mask_parts
from transformer_viz.terms import visible_text
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import chart, code, figure_file
from transformer_viz.views.masks.setup import Setup
from transformer_viz.views.snippets import masks as programs
from transformer_viz.views.state import focus

TITLE, ORDER = "Masks", 0

_VIEW_WORDS = {"batch": "the whole batch", "sentence": "this sentence, large"}


def show(setup: Setup) -> None:
    """The switch and the figure; on a phone one mask at a time."""
    traces = setup.forced()
    if setup.is_narrow:
        focus.controls(traces[setup.sentence], combined=False, with_best=False)
    else:
        st.segmented_control(
            "Show",
            list(_VIEW_WORDS),
            key="lab_view",
            required=True,
            format_func=_VIEW_WORDS.__getitem__,
            label_visibility="collapsed",
        )
    is_batch = st.session_state.lab_view == "batch" and not setup.is_narrow
    chosen = range(len(traces)) if is_batch else [setup.sentence]
    layer, head = st.session_state.layer, st.session_state.head
    head = head if isinstance(head, int) else 0
    columns = 1 if setup.is_narrow else 5 if is_batch else 3
    figure = figures.mask_grid(
        [_parts(setup, traces[i], layer, head) for i in chosen],
        [f"{i + 1}: {visible_text(traces[i].source)}" for i in chosen],
        columns=columns,
        theme=setup.theme,
        large=setup.is_large or not is_batch,
    )
    words = "The encoder's, the decoder's and the cross mask of each sentence, each cell by its reason"
    chart.show(figure, "lab-masks-chart", words)
    figure_file.offer(figure, "masks")
    st.caption(
        "row = the query, which looks · column = the key, looked at · taken from the run, not drawn from the rule. "
        "A padded query is left alone: nobody reads its row."
    )
    looks = {**setup.looks, "large": setup.is_large or not is_batch}
    only = st.session_state.kind if setup.is_narrow else None
    code.show(programs.masks(setup.batch, None if is_batch else setup.sentence, (layer, head), columns, looks, only))


def _parts(setup: Setup, trace: Trace, layer: int, head: int) -> tuple[MaskPart, ...]:
    """Of a sentence; on a phone the one that is in force in the kind of attention in focus."""
    parts = mask_parts(trace, layer, head)
    return tuple(part for part in parts if part.kind == st.session_state.kind)[-1:] if setup.is_narrow else parts
