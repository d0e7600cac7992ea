"""The loss of every token without padding, and the wrong mean that counts padding."""

import streamlit as st

from transformer_viz import figures
from transformer_viz.analysis.loss import losses
from transformer_viz.numbers_in_words import rounded_words
from transformer_viz.views.components import chart, code, figure_file, style
from transformer_viz.views.components.recorded_calls import Call, call
from transformer_viz.views.masks.setup import Setup

TITLE, ORDER = "Loss", 5


def show(setup: Setup) -> None:
    """One figure and the two sums."""
    if not setup.model.model.kind.writes:
        st.info(
            "This model is an encoder alone: it writes nothing that could be compared with a target.", icon=":material/info:"
        )
        return
    traces = setup.forced()
    found = call(losses, traces)
    figure = call(figures.token_losses, traces, found, style=style.figure_style())
    chart.show(figure, "lab-loss-chart", "The loss of each target token; padding is left out")
    figure_file.offer(figure, "losses")
    n_padding = int((~found.counted).sum())
    st.caption(
        f"{int(found.counted.sum())} real tokens and {n_padding} padded ones. Each cell names the token that should be "
        "written; the targets are read in one pass (teacher forcing)."
    )
    right, with_padding, as_right = st.columns(3)
    with right, st.container(border=True):
        st.markdown("**Right:** padding left out")
        _numbers(found.loss, found.accuracy)
    with with_padding, st.container(border=True):
        st.markdown("**Wrong:** padding counted as tokens to predict")
        _numbers(found.loss_with_padding, found.accuracy_with_padding)
    with as_right, st.container(border=True):
        st.markdown("**Wrong:** every padded position counted as right")
        _numbers(None, found.accuracy_padding_right)
    code.show(figure, Call("print({0}.loss, {0}.loss_with_padding)", found))


def _numbers(loss: float | None, accuracy: float) -> None:
    if loss is not None:
        st.markdown(f"loss {rounded_words(loss, 4)}")
    st.markdown(f"accuracy {accuracy:.4f}")
