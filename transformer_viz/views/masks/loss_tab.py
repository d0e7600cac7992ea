"""The loss of every token without padding, and the wrong mean that counts padding."""

import streamlit as st

from transformer_viz import figures
from transformer_viz.analysis.loss import losses
from transformer_viz.language import later, say
from transformer_viz.numbers_in_words import rounded_words
from transformer_viz.views.components import chart, code
from transformer_viz.views.components.recorded_calls import Call, call
from transformer_viz.views.masks.setup import Setup

TITLE, ORDER = later("Loss"), 5


def show(setup: Setup) -> None:
    """Draws the losses as a figure, and the mean with and without padding."""
    if not setup.model.network.kind.writes:
        st.info(
            say("This model is an encoder alone: it writes nothing that could be compared with a target."),
            icon=":material/info:",
        )
        return
    traces = setup.forced()
    result = call(losses, traces)
    words = say("The loss of each target token; padding is left out")
    figure = chart.draw(figures.token_losses, traces, result, key="lab-loss-chart", words=words, file="losses")
    n_padding = int((~result.counted).sum())
    st.caption(
        say(
            "{count} real tokens and {n_padding} padded ones. Each cell names the token that should be "
            "written; the targets are read in one pass (teacher forcing).",
            count=int(result.counted.sum()),
            n_padding=n_padding,
        )
    )
    means = (
        (say("**Right:** padding left out"), result.loss, result.accuracy),
        (
            say("**Wrong:** padding counted as tokens to predict"),
            result.loss_with_padding,
            result.accuracy_with_padding,
        ),
        (say("**Wrong:** every padded position counted as right"), None, result.accuracy_padding_right),
    )
    for column, (words, loss, accuracy) in zip(st.columns(3), means, strict=True):
        with column, st.container(border=True):
            st.markdown(words)
            if loss is not None:
                st.markdown(say("loss {loss}", loss=rounded_words(loss, 4)))
            st.markdown(say("accuracy {accuracy:.4f}", accuracy=accuracy))
    code.show(figure, Call("print({0}.loss, {0}.loss_with_padding)", result))
