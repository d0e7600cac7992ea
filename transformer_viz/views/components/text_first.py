"""The first pictures of a browser wait until it can show the text.

Where both come in the same moment, the browser evaluates plotly.js, most of a second of work, before it shows a word, and
the two get in each other's way: with the wait even the pictures are there earlier (docs/performance.md).
"""

import time

import streamlit as st

from transformer_viz.views.server import turns

_SECONDS = 0.5
_KEY = "_has_drawn"


def hold() -> None:
    """Waits, in the first run of a session and in no other. Without a browser nobody is waited for."""
    if not st.session_state.get(_KEY) and st.context.headers:
        with turns.aside():
            time.sleep(_SECONDS)
    drawn()


def drawn() -> None:
    """The session has had its first run: what it needs for pictures is there."""
    st.session_state[_KEY] = True
