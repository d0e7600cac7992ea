"""Streamlit forgets what a widget said as soon as a page does not draw it; these are held on to across pages."""

from collections.abc import Iterable

import streamlit as st

from transformer_viz.views.state.controls import CONTROLS


def keep(keys: Iterable[str] = CONTROLS) -> None:
    """Once a run, before any widget is drawn; a fragment keeps its own."""
    # The session is asked once for all its keys: to be asked for one that it does not have takes it long.
    for key in set(keys).intersection(st.session_state):
        st.session_state[key] = st.session_state[key]
