"""A text that a newcomer has chosen: its run begins at the first step, and the first one plays by itself."""

import streamlit as st

_NEW, _OWN, _PLAYS = "own_text_is_new", "own_text", "own_text_plays"
"""In the session: that it is a newcomer's; that there is a text, and whether its run is still to begin; and the run that plays
by itself."""


def welcome() -> None:
    """Notes that a newcomer is here, who was asked the first question."""
    st.session_state[_NEW] = True


def chosen() -> None:
    """Notes that a text was typed, or taken; for a callback."""
    st.session_state[_OWN] = True


def is_there() -> bool:
    """Whether a newcomer has chosen a text."""
    return {_NEW, _OWN} <= st.session_state.keys()


def begins(run: str, *, unfolds: bool) -> bool:
    """Whether this run is to begin, which is so once for each text that is chosen where runs unfold."""
    state = st.session_state
    is_new = unfolds and is_there() and bool(state[_OWN])
    if _OWN in state:
        state[_OWN] = False
    if is_new:
        state.setdefault(_PLAYS, run)
    return is_new


def plays(run: str) -> bool:
    """Whether this run plays by itself."""
    return st.session_state.get(_PLAYS) == run
