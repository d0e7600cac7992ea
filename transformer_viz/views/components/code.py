"""“Show the code”: the few lines of Python, or the command, that make again what is on the screen.

What is behind a closed fold is not sent: the browser would load and evaluate what colours code, a quarter of a second of work,
before it shows a word of the page, and colour lines that nobody sees at every step.
"""

from typing import Any

import streamlit as st

from transformer_viz.views.components import recorded_calls
from transformer_viz.views.state import link


def show(*statements: Any, key: str = "code") -> None:
    """The lines that end with these statements (`recorded_calls.program`), behind the fold of that key: that of the page, or
    that of an open tab below a step player."""
    write(fold(key), *statements)


def write(place: Any | None, *statements: Any) -> None:
    """Draws the program behind some values into a place that `fold` made."""
    if place is not None:
        place.code(recorded_calls.program(*statements), language="python")


def show_command(command: str, key: str) -> None:
    """A command in a fold; long lines wrap, as in a terminal."""
    if (place := fold(key)) is not None:
        place.code(command, language="bash", wrap_lines=True)


def fold(key: str = "code") -> Any | None:
    """A fold with an empty place inside; None while it is closed.

    A page whose player is a fragment that moves on alone may write to a place outside of it only if that was there before it,
    and if it wrote there in the whole run too. So the page makes room above, then this place, then what goes above.
    """
    with link.expander("Show the code", key=key, icon=":material/code:") as place:
        return st.empty() if place.open else None
