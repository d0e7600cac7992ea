"""The small scripts that connect charts to Python, each registered once a process. They hold no user's text."""

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

_FOLDER = Path(__file__).parent


@cache
def bridge(name: str) -> Any:
    """The component of `NAME.js`, which may use `keepAttached` of `attach.js`."""
    scripts = (_FOLDER / f"{part}.js" for part in ("attach", name))
    script = "\n".join(path.read_text(encoding="utf-8") for path in scripts)
    return st.components.v2.component(f"transformer-viz-{name}", js=script)
