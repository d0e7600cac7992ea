"""*On trial* in the tab Heads: tests whether what the head in focus looks at matters. Everything is computed on request."""

import streamlit as st

from transformer_viz.errors import TransformerVizError
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.state import link

QUESTIONS = (
    "Does it point at the cause?",
    "Is it needed?",
    "Is its order faithful?",
    "Could it look elsewhere?",
)


def show(shown: Shown) -> None:
    """Draws the questions, and the answer to the one that is chosen; or why there is none."""
    # Here, because a file has the other tabs where there is no torch.
    from transformer_viz.views.explore.trial import asked, counter_proof, curves, knock_out, verdict

    model, trace = shown.model, shown.tokens
    assert model is not None
    if not model.model.kind.writes:
        words = f"{model.name} is an encoder alone: it writes nothing, so there is no output to explain."
        st.info(literal(words), icon=":material/info:")
        return
    if not trace.output_tokens:
        st.info("Nothing was written in this run, so there is no output to explain.", icon=":material/info:")
        return
    place = QUESTIONS.index(link.segmented_control("The question", QUESTIONS, key="question", label_visibility="collapsed"))
    try:
        (verdict, knock_out, curves, counter_proof)[place].show(trace, model)
        # The sentence has the answers to the first two questions, whichever is open: so a link has their toggles always.
        with st.container(key="in-link-trial"):
            for other, key in enumerate((asked.VERDICT, asked.KNOCK_OUT)):
                if other != place:
                    asked.is_asked(key, trace, model, key)
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
