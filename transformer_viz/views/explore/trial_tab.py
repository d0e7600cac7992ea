"""The tab On trial: whether what the head in focus looks at matters. Nothing is computed before somebody asks."""

from types import ModuleType
from typing import TYPE_CHECKING

import streamlit as st

from transformer_viz.errors import TransformerVizError
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.state import on_demand
from transformer_viz.views.state.controls import QUESTIONS

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

TITLE, ORDER, NEEDS_MODEL, IN_LARGE = "On trial", 2.5, True, True
TELLS = "The causes of what was written"


def made_of(trace: Trace, model: "LoadedModel", device: str) -> dict[str, object]:
    """What each answer is made of."""
    from transformer_viz.views.explore.trial import asked

    return asked.made_of(trace, model, device)


def start(trace: Trace, model: "LoadedModel", device: str) -> None:
    """Asks for the answers that a link asks for."""
    on_demand.start(made_of(trace, model, device))


def show(shown: Shown) -> None:
    """The questions, and the answer to one of them; or why there is none."""
    model, trace = shown.model, shown.tokens
    assert model is not None
    if not model.model.sizes.writes:
        words = f"{model.name} is an encoder alone: it writes nothing, so nothing that it looks at is the cause of anything."
        st.info(literal(words), icon=":material/info:")
        return
    if not trace.output_tokens:
        st.info("Nothing was written in this run, so no token can be the cause of anything.", icon=":material/info:")
        return
    st.segmented_control("The question", list(QUESTIONS.values()), key="trial", required=True, label_visibility="collapsed")
    try:
        _part(st.session_state.trial).show(shown)
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")


def _part(question: str) -> ModuleType:
    # Here, because a file has the other tabs where there is no torch.
    from transformer_viz.views.explore.trial import counter_proof, curves, knock_out, verdict

    parts = (verdict, knock_out, curves, counter_proof)
    return dict(zip(QUESTIONS.values(), parts, strict=True))[question]
