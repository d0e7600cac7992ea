"""The tab Memory: what the recurrence of a decoder without self-attention remembers of each token."""

from typing import TYPE_CHECKING

import streamlit as st

from transformer_viz import figures
from transformer_viz.errors import TransformerVizError
from transformer_viz.views.components import chart, code, figure_file, style
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call, call
from transformer_viz.views.explore.shown import Shown

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

TITLE, ORDER, NEEDS_MODEL = "Memory", 0.7, True
TELLS = "The tokens in the decoder's memory"


def is_for(model: "LoadedModel") -> bool:
    """Whether its decoder has a recurrence."""
    return bool(model.model.sizes.recurrences)


def why(model: "LoadedModel") -> str:
    """Of such a model, in a sentence, why its decoder has no self-attention."""
    return next(block.sentence for block in model.architecture if block.role == "recurrence")


def show(shown: Shown) -> None:
    """One layer: the one in focus, or the decoder's last."""
    # Here, because a file has the other tabs where there is no model.
    from transformer_viz.views.cache import runs

    assert shown.model is not None
    try:
        found = runs.remembered(shown.model, shown.device, shown.tokens)
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    at = st.session_state.layer
    layer = at if at in found.layers else found.layers[-1]
    figure = call(figures.remembered, found, layer, style=style.figure_style())
    chart.show(figure, "memory-chart", "How much of each token is still in the decoder's memory after each step")
    figure_file.offer(figure, "memory")
    st.caption(
        f"The mean over {found.n_units:,} units of how much of what a token put in is left; each unit forgets by itself, so a "
        "row does not add up to 1. These are no weights of attention: nothing is compared with anything. All tokens' parts "
        f"add up to the memory itself, to {found.apart:.0e}."
    )
    code.show(figure, Call("print({}.apart)", found), key="code_of_tab")
