"""Presses in a component of ours: the browser tells the newest, each with a number, as a state.

The browser's half is `viewer/presses.js`.
"""

from collections.abc import Mapping
from typing import Any

import streamlit as st

NAME = "presses"
_MOST = 2**53


def new(key: str) -> list[Any]:
    """Returns the presses in a component since this was asked last, the oldest first, as the browser says them.

    Args:
        key: of the component.
    """
    return fresh((st.session_state.get(key) or {}).get(NAME), f"{key}_heard")


def fresh(told: Any, heard_key: str) -> list[Any]:
    """Returns those of these presses that are new.

    Args:
        told: the presses, as the browser says them.
        heard_key: where the session has the number of the newest that it has heard.
    """
    state, newest = st.session_state, st.session_state.get(heard_key, 0)
    numbered = [press for press in told if isinstance(press, Mapping)] if isinstance(told, list) else []
    unheard = [press for press in numbered if type(press.get("n")) is int and newest < press["n"] < _MOST]
    state[heard_key] = max([newest, *(press["n"] for press in unheard)])
    return [press.get("what") for press in unheard]
