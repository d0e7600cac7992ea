"""Counts the visits at the same time, of this server's process."""

import weakref

import streamlit as st

_FEW = 8
_KEY = "visit"


class _Visit:
    """One, as long as Streamlit keeps its session."""


_visits: weakref.WeakSet[_Visit] = weakref.WeakSet()


def few() -> bool:
    """Tells whether there are so few that each key that is pressed may be answered."""
    _visits.add(st.session_state.setdefault(_KEY, _Visit()))
    return len(_visits) <= _FEW
