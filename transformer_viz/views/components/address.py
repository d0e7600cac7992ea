"""The browser's history: the link of a page replaces its former link, so that one press of Back leaves the page."""

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st


def one_entry_a_page() -> None:
    """Below every page; it draws nothing."""
    _component()(key="address", data=None, height=1)


@cache
def _component() -> Any:
    script = Path(__file__).with_name("address.js").read_text(encoding="utf-8")
    return st.components.v2.component("transformer-viz-address", js=script)
