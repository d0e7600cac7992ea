"""The button that copies the page's link: what stands in the browser's own address bar, so it is never behind."""

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

_HTML = """
<div class="copy">
  <button type="button">Copy the link</button>
  <input type="text" readonly aria-label="Link to this view" />
</div>
"""
_CSS = """
.copy { display: flex; gap: 6px; font-family: var(--st-font, sans-serif); }
.copy button, .copy input {
  font: inherit; font-size: 14px; height: 34px; color: var(--st-text-color); border-radius: 6px;
  border: 1px solid var(--st-border-color); background: var(--st-secondary-background-color);
}
.copy button { flex: none; cursor: pointer; padding: 0 10px; }
.copy button:focus-visible, .copy input:focus-visible { outline: 3px solid var(--st-primary-color); }
.copy input { flex: 1 1 0; min-width: 0; padding: 0 8px; font-family: var(--st-code-font, monospace); }
"""


def show(too_long: str) -> None:
    """The button, and what the link cannot hold.

    Args:
        too_long: in words; empty where the link holds everything.
    """
    _component()(key="copy_link", data=None)
    if too_long:
        st.warning(too_long, icon=":material/link_off:")


@cache
def _component() -> Any:
    """Registered once a process."""
    script = Path(__file__).with_name("copy_link.js").read_text(encoding="utf-8")
    return st.components.v2.component("transformer-viz-copy-link", html=_HTML, css=_CSS, js=script)
