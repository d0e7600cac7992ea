"""A text that somebody has chosen in this visit: its run begins at the first step, and the first one plays by itself."""

import streamlit as st

_OWN, _PLAYS = "own_text", "own_text_plays"
"""In the session: that there is one, and whether its run is still to begin; and the run that plays by itself."""


def chosen() -> None:
    """Notes that a text was typed, or taken; for a callback."""
    st.session_state[_OWN] = True


def is_there() -> bool:
    """Whether somebody has chosen a text in this visit."""
    return _OWN in st.session_state


def begins(run: str) -> bool:
    """Whether this run, of a text just chosen, is to begin: once for each text."""
    state = st.session_state
    if not state.get(_OWN):
        return False
    state[_OWN] = False
    state.setdefault(_PLAYS, run)
    return True


def plays(run: str) -> bool:
    """Whether this run plays by itself."""
    return st.session_state.get(_PLAYS) == run
