"""The weights of the focus as a table, in the tab Export."""

import math
from typing import Any

import pandas as pd
import streamlit as st

from transformer_viz.text_display import display_text
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import code
from transformer_viz.views.components.recorded_calls import Call

_MOST_ROWS, _MOST_OF_A_LAYER = 20_000, 300_000
"""Rows of a head that are shown, and weights of all heads of a layer up to which they are shown together."""


def show(trace: Trace) -> None:
    """The table, its download, and the code."""
    _numbers(trace)
    state, everything = st.session_state, Call(Trace.to_frame, trace)
    table = Call("table = {0}[({0}.kind == {1}) & ({0}.layer == {2})]", everything, state.kind, state.layer)
    if isinstance(state.head, int):
        table = Call('table = {0}[{0}["head"] == {1}]', table, state.head)
    code.show(table, key="code_of_tab")


def _numbers(trace: Trace) -> None:
    state = st.session_state
    weights = trace.attentions[state.kind].weights
    if not isinstance(state.head, int) and math.prod(weights.shape[1:]) > _MOST_OF_A_LAYER:
        st.caption("All heads of this layer are too many numbers for a table; choose one head above.")
        return
    here = trace.to_frame(state.kind, state.layer, state.head if isinstance(state.head, int) else None)
    st.caption("The weights of the focus, one per row. Layers, heads and tokens count from 1 here, from 0 in the CSV.")
    # A weight of 8e-31 would be written with all its zeros.
    floats = here.select_dtypes("floating").columns
    digits: Any = {name: st.column_config.NumberColumn(format="%.4g") for name in floats}
    st.dataframe(_from_one(here.head(_MOST_ROWS)), height=320, hide_index=True, column_config=digits)
    st.download_button("CSV of the focus", here.to_csv(index=False).encode(), "attention-focus.csv", "text/csv")


def _from_one(frame: pd.DataFrame) -> pd.DataFrame:
    """The numbers of layers, heads and tokens as a person counts, and tokens whose spaces are to be seen."""
    counted = {name: frame[name] + 1 for name in ("layer", "head", "query", "key")}
    return frame.assign(**counted, **{name: frame[name].map(display_text) for name in ("query_token", "key_token")})
