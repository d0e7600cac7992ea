"""What was pressed in a component of ours: the browser tells the newest presses, each with a number, as a state.

The browser's half is `viewer/presses.js`.
"""

from collections.abc import Mapping
from typing import Any

import streamlit as st

NAME = "presses"
_MOST = 2**53


def new(key: str) -> list[Any]:
    """What was pressed in a component since this was asked last, the oldest first, as the browser says it.

    Args:
        key: of the component.
    """
    state = st.session_state
    told, heard = (state.get(key) or {}).get(NAME), state.get(f"{key}_heard", 0)
    numbered = [each for each in told if isinstance(each, Mapping)] if isinstance(told, list) else []
    fresh = [each for each in numbered if type(each.get("n")) is int and heard < each["n"] < _MOST]
    state[f"{key}_heard"] = max([heard, *(each["n"] for each in fresh)])
    return [each.get("what") for each in fresh]
