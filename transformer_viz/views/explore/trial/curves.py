"""The question *Is its order faithful?*: what is lost without the tokens that a map puts first, and with these alone."""

import math

import pandas as pd
import streamlit as st

from transformer_viz import figures
from transformer_viz.attribution.result.faithfulness import KS, MeanCurve
from transformer_viz.views.components import chart, code, figure_file, style
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import call
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.explore.trial import asked, runs
from transformer_viz.views.state import display_options

_BESIDE = ("gradient", "rollout", "alti")
"""Measures beside the weights; those that the model cannot give are left out."""


def show(shown: Shown) -> None:
    """A button, and two small curves."""
    state, model = st.session_state, shown.model
    assert model is not None
    if not asked.has_causes():
        return
    mode = asked.modes(model)[0]
    st.markdown(
        "Tokens are removed in the order of each step's weights. If a map puts first what matters, removing its first "
        "tokens loses much probability, and keeping only these loses little."
    )
    if not asked.is_asked(asked.CURVES, shown, "Take tokens away"):
        return
    maps = tuple(dict.fromkeys(asked.name_of(state.layer, head) for head in (state.head, "mean")))
    found = runs.curves(model, shown.tokens, state.kind, mode, (*maps, *_BESIDE))
    if math.isnan(found[0].comprehensiveness[0].value):
        st.info("No step can be judged: none has two tokens to choose from, one of which matters.", icon=":material/info:")
        return
    is_large = display_options.current().is_large
    st.markdown(literal(_words(found)))
    figure = call(figures.faithfulness, found, style=style.figure_style())
    chart.show(figure, "trial-curves", f"Probability lost by k. {_words(found)}")
    figure_file.offer(figure, "faithfulness")
    if is_large:
        return
    with st.expander("The numbers"):
        st.dataframe(_table(found), hide_index=True)
    st.caption(f"Of this run, tokens taken away by {mode}; special tokens always stay. A single run has no interval.")
    code.show(figure, key="code_of_tab")


def _words(found: tuple[MeanCurve, ...]) -> str:
    """What is lost without the first token."""
    own, (cause, random) = found[0], found[-2:]
    lost = {name: curve.comprehensiveness[0].value for name, curve in (("own", own), ("cause", cause), ("random", random))}
    return (
        f"Without the token that {own.name} looks at most, {lost['own']:.2f} of the probability of what was written is lost; "
        f"without the one that matters most {lost['cause']:.2f}, without a random one {lost['random']:.2f}. With that token "
        f"alone {own.sufficiency[0].value:.2f} is lost, with a random one alone {random.sufficiency[0].value:.2f}."
    )


def _table(found: tuple[MeanCurve, ...]) -> pd.DataFrame:
    rows = [
        {"order": curve.name, "k": k, "lost without them": without.value, "lost with them alone": alone.value}
        for curve in found
        for k, without, alone in zip(KS, curve.comprehensiveness, curve.sufficiency, strict=True)
    ]
    return pd.DataFrame(rows)
