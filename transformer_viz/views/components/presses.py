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
    state, heard = st.session_state, st.session_state.get(heard_key, 0)
    numbered = [each for each in told if isinstance(each, Mapping)] if isinstance(told, list) else []
    unheard = [each for each in numbered if type(each.get("n")) is int and heard < each["n"] < _MOST]
    state[heard_key] = max([heard, *(each["n"] for each in unheard)])
    return [each.get("what") for each in unheard]
