"""Mounts the bridge that tells Python which tile was clicked and whether the page is narrow."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from transformer_viz.views.parts.bridge import bridge

KEY = "charts"


def is_narrow() -> bool:
    """Whether the browser said that its window is as narrow as a phone's."""
    return bool(_state().get("narrow"))


def clicked_tile() -> dict[str, Any] | None:
    """The tile of the click that caused this run: kind, layer, head, and the step the player is at."""
    return _state().get("tile")


def show(kinds: Sequence[str], on_tile: Callable[[], None]) -> None:
    """Mounts the bridge; it draws nothing."""
    content = {"kinds": list(kinds), "narrow": is_narrow()}
    bridge("charts")(
        key=KEY, data=content, default={"narrow": False}, on_narrow_change=lambda: None, on_tile_change=on_tile, height=1
    )


def _state() -> dict[str, Any]:
    return st.session_state.get(KEY) or {}
