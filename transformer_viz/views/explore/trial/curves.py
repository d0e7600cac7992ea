"""The question *Is its order faithful?*: what is lost without the tokens that a map puts first, and with these alone."""

import math

import pandas as pd
import streamlit as st

from transformer_viz import figures
from transformer_viz.attribution.result.faithfulness import KS, MeanCurve
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import chart, code
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.explore.trial import asked, runs
from transformer_viz.views.state import display_options

_BESIDE = ("gradient", "rollout", "alti")
"""Measures beside the weights; those that the model cannot give are left out."""


def show(trace: Trace, model: LoadedModel) -> None:
    """Draws a toggle and, while it is on, two small curves."""
    state = st.session_state
    if not asked.has_causes():
        return
    mode = asked.modes(model)[0]
    st.markdown(
        "Tokens are removed in the order of each step's weights. If a map puts first what matters, removing its first "
        "tokens loses much probability, and keeping only these loses little."
    )
    if not asked.is_asked(asked.CURVES, trace, model, "Take tokens away"):
        return
    maps = tuple(dict.fromkeys(asked.name_of(state.layer, head) for head in (state.head, "mean")))
    found = runs.curves(model, trace, state.kind, mode, (*maps, *_BESIDE))
    if math.isnan(found[0].comprehensiveness[0].value):
        st.info("No step can be judged: none has two tokens to choose from, one of which matters.", icon=":material/info:")
        return
    words = _words(found)
    st.markdown(literal(words))
    alt = f"Probability lost by k. {words}"
    figure = chart.draw(figures.faithfulness, found, key="trial-curves", words=alt, file="faithfulness")
    if display_options.current().is_large:
        return
    rows = [
        {"order": curve.name, "k": k, "lost without them": without.value, "lost with them alone": alone.value}
        for curve in found
        for k, without, alone in zip(KS, curve.comprehensiveness, curve.sufficiency, strict=True)
    ]
    with st.expander("The numbers"):
        st.dataframe(pd.DataFrame(rows), hide_index=True)
    st.caption(f"Of this run, tokens taken away by {mode}; special tokens always stay. A single run has no interval.")
    code.show(figure, key="code_of_tab")


def _words(found: tuple[MeanCurve, ...]) -> str:
    """What is lost without the first token."""
    own, (cause, random) = found[0], found[-2:]
    without_own, without_cause, without_random = (curve.comprehensiveness[0].value for curve in (own, cause, random))
    return (
        f"Without the token that {own.name} looks at most, {without_own:.2f} of the probability of what was written is lost; "
        f"without the one that matters most {without_cause:.2f}, without a random one {without_random:.2f}. With that token "
        f"alone {own.sufficiency[0].value:.2f} is lost, with a random one alone {random.sufficiency[0].value:.2f}."
    )
