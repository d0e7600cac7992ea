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


def begins(run: str, *, unfolds: bool) -> bool:
    """Whether this run is to begin, which is so once for each text that is chosen where runs unfold."""
    state = st.session_state
    is_new = unfolds and bool(state.get(_OWN))
    if _OWN in state:
        state[_OWN] = False
    if is_new:
        state.setdefault(_PLAYS, run)
    return is_new


def plays(run: str) -> bool:
    """Whether this run plays by itself."""
    return st.session_state.get(_PLAYS) == run
