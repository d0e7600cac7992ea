"""The tab Masks: what each query may look at, and why not."""

import streamlit as st

from transformer_viz import figures
from transformer_viz.addresses import map_address
from transformer_viz.language import later, say
from transformer_viz.terms import head_title, kind_words
from transformer_viz.views.components import chart, code
from transformer_viz.views.explore.shown import Shown

TITLE, ORDER = later("Masks"), 3
TELLS = later("The masks, with all tokens beside them,")


def show(shown: Shown) -> None:
    """Draws a mask for each kind, and the code."""
    trace, state, masks = shown.trace, st.session_state, []
    st.caption(say("What each query (row) may look at (column), and why not. As the run applied it."))
    for column, (kind, attention) in zip(st.columns(len(trace.kinds)), trace.attentions.items(), strict=True):
        # The focus, as far as this kind has such a layer and head.
        layer = state.layer if state.layer in attention.layers else attention.layers[-1]
        head = min(state.head if isinstance(state.head, int) else 0, attention.n_heads - 1)
        with column:
            words = say("Mask of the {kind}", kind=kind_words(kind))
            masks.append(chart.draw(figures.mask, trace, map_address(kind, layer, head), key=f"mask-{kind}", words=words))
        if attention.reasons.ndim == 4:
            column.caption(say("Heads differ in their masks here; this is {layer}.", layer=head_title(layer, head)))
    code.show(*masks, key="code_of_tab")
