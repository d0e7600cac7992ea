"""A text of one's own: its run begins at the first step, and the first one of a visit plays by itself."""

import streamlit as st

from transformer_viz.views.state import lesson_place

_OWN, _PLAYS = "own_text", "own_text_plays"
"""In the session: that there is one, and how its run is to begin, if it has not begun; and the run that plays by itself."""
_WAITING, _PLAYING = "waiting", "playing"


def chosen(*, is_followed: bool = False) -> None:
    """Notes that a text was typed, or taken; for a callback. In a lesson its run opens where the lesson says.

    Args:
        is_followed: whether more may be typed; what is not finished does not play.
    """
    if lesson_place.current() is None:
        st.session_state[_OWN] = _WAITING if is_followed else _PLAYING


def is_there() -> bool:
    """Tells whether somebody has chosen a text in this visit."""
    return _OWN in st.session_state


def waits() -> bool:
    """Tells whether the run of a text that was chosen is still to begin."""
    return bool(st.session_state.get(_OWN))


def begins(run: str, *, unfolds: bool) -> bool:
    """Tells whether this run is to begin, which is so once for each text that is chosen where runs unfold."""
    state = st.session_state
    if not (how := state.get(_OWN)):
        return False
    state[_OWN] = ""
    if unfolds and how == _PLAYING:
        state.setdefault(_PLAYS, run)
    return unfolds


def plays(run: str) -> bool:
    """Tells whether this run plays by itself."""
    return st.session_state.get(_PLAYS) == run
