"""Every mask of the batch, or of one sentence, by its reasons."""

import streamlit as st

from transformer_viz import figures
from transformer_viz.analysis.mask_parts import mask_parts
from transformer_viz.views.components import chart, code, figure_file
from transformer_viz.views.masks.setup import Setup
from transformer_viz.views.snippets import masks as programs

TITLE, ORDER = "Masks", 0

_VIEW_WORDS = {"batch": "the whole batch", "sentence": "this sentence, large"}


def show(setup: Setup) -> None:
    """The switch and the figure."""
    st.segmented_control(
        "Show",
        list(_VIEW_WORDS),
        key="lab_view",
        required=True,
        format_func=_VIEW_WORDS.__getitem__,
        label_visibility="collapsed",
    )
    traces = setup.forced()
    is_batch = st.session_state.lab_view == "batch"
    chosen = range(len(traces)) if is_batch else [setup.sentence]
    layer, head = st.session_state.layer, st.session_state.head
    head = head if isinstance(head, int) else 0
    columns = 1 if setup.is_narrow else 5 if is_batch else 3
    figure = figures.mask_grid(
        [mask_parts(traces[i], layer, head) for i in chosen],
        [f"{i + 1}: {traces[i].source}" for i in chosen],
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
    code.show(programs.masks(setup.batch, None if is_batch else setup.sentence, layer, head, columns, looks))
