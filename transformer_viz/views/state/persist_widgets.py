"""Streamlit forgets what a widget said as soon as a page does not draw it; these are held on to across pages.

Of a text no more is kept than its control allows, whatever a stranger's browser sends. Streamlit's own `max_chars` would do
that too, and show a counter up to that limit, where the model reads much less.
"""

from collections.abc import Iterable

import streamlit as st

from transformer_viz.views.state.controls import CONTROLS, LONGEST


def keep(keys: Iterable[str] = CONTROLS) -> None:
    """Once a run, before any widget is drawn; a fragment keeps its own."""
    # The session is asked once for all its keys: to be asked for one that it does not have takes it long.
    for key in set(keys).intersection(st.session_state):
        value = st.session_state[key]
        st.session_state[key] = value[: LONGEST[key]] if key in LONGEST and isinstance(value, str) else value
