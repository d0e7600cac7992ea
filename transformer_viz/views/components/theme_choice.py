"""The choice of light, dark or the system's theme: Streamlit's own setting, whose menu this app hides."""

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from transformer_viz.views import names

_HTML = """
<fieldset><legend>Light or dark</legend>
<button value="Light">Light</button><button value="Dark">Dark</button><button value="System">As the system</button></fieldset>
"""
_CSS = """
fieldset { border: 0; margin: 0; padding: 0; display: flex; }
legend { padding: 0 0 0.3rem; font: 0.875rem var(--st-font); color: var(--st-text-color); }
button {
  font: 0.875rem var(--st-font); color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); padding: 0.35rem 0.7rem; min-height: 2.2rem; cursor: pointer;
}
button[aria-pressed="true"] { color: var(--st-primary-color); border-color: var(--st-primary-color); }
button:focus-visible { outline: 3px solid var(--st-primary-color); outline-offset: 1px; }
"""


def buttons() -> None:
    """Draws the three buttons. One of them loads the page again: the link keeps what was chosen, an opened file is not kept."""
    # Explore is the bare address.
    _component()(key="theme-choice", data={"pages": ["", *names()]})


@cache
def _component() -> Any:
    script = Path(__file__).with_name("theme_choice.js").read_text(encoding="utf-8")
    return st.components.v2.component("transformer-viz-theme-choice", html=_HTML, css=_CSS, js=script)
