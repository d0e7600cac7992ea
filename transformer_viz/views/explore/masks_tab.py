"""The tab Masks: what each query may look at, and why not."""

import streamlit as st

from transformer_viz import figures
from transformer_viz.terms import KIND_TITLES, Kind, head_title
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import chart, code, style
from transformer_viz.views.components.recorded_calls import call
from transformer_viz.views.explore.shown import Shown

TITLE, ORDER = "Masks", 3
TELLS = "The masks, with all tokens beside them,"


def show(shown: Shown) -> None:
    """A mask a kind, and the code."""
    trace, masks = shown.trace, []
    st.caption("What each query (row) may look at (column), and why not. As the run applied it.")
    for column, kind in zip(st.columns(len(trace.kinds)), trace.kinds, strict=True):
        layer, head = _mask_place(trace, kind)
        masks.append(call(figures.mask, trace, kind, layer, head, style=style.figure_style()))
        with column:
            chart.show(masks[-1], f"mask-{kind}", f"Mask of the {KIND_TITLES[kind]}")
        if trace.attentions[kind].reasons.ndim == 4:
            column.caption(f"Heads differ in their masks here; this is {head_title(layer, head)}.")
    code.show(*masks, key="code_of_tab")


def _mask_place(trace: Trace, kind: Kind) -> tuple[int, int]:
    """The focus, as far as this kind has such a layer and head."""
    state, layers, n_heads = st.session_state, trace.attentions[kind].layers, trace.attentions[kind].n_heads
    head = state.head if isinstance(state.head, int) else 0
    return state.layer if state.layer in layers else layers[-1], min(head, n_heads - 1)
