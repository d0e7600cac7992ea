"""“Show the code”: the few lines of Python, or the command, that make again what is on the screen.

What is behind a closed fold is not sent: the browser would load and evaluate what colours code, a quarter of a second of work,
before it shows a word of the page, and colour lines that nobody sees at every step.
"""

from typing import Any

import streamlit as st

from transformer_viz.language import say
from transformer_viz.views.components import recorded_calls
from transformer_viz.views.state import link


def show(*statements: Any, key: str = "code") -> None:
    """The lines that end with these statements (`recorded_calls.program`), behind the fold of that key: that of the page, or
    that of an open tab below a step player."""
    with _fold(key) as place:
        if place.open:
            st.code(recorded_calls.program(*statements), language="python")


def show_command(command: str, key: str) -> None:
    """A command in a fold; long lines wrap, as in a terminal."""
    with _fold(key) as place:
        if place.open:
            st.code(command, language="bash", wrap_lines=True)


def _fold(key: str) -> Any:
    return link.expander(say("Show the code"), key=key, icon=":material/code:")
