"""Mounts the bridge that tells Python which tile was clicked and whether the page is narrow."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

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
    _component()(
        key=KEY, data=content, default={"narrow": False}, on_narrow_change=lambda: None, on_tile_change=on_tile, height=1
    )


def _state() -> dict[str, Any]:
    return st.session_state.get(KEY) or {}


@cache
def _component() -> Any:
    return st.components.v2.component(
        "transformer-viz-charts", js=(Path(__file__).parent / "charts.js").read_text(encoding="utf-8")
    )
