"""In the box for several lines Enter sends what was typed, as in a box for one; Shift and Enter begin a new line."""

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st


def listen(name: str = "text") -> None:
    """Beside the box; it draws nothing. On a page with two boxes each has a name."""
    _component()(key=f"prompt-keys-{name}", data=None, height=1, width=1)


@cache
def _component() -> Any:
    script = Path(__file__).with_name("prompt_keys.js").read_text(encoding="utf-8")
    return st.components.v2.component("transformer-viz-prompt-keys", js=script)
