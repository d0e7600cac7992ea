"""What takes seconds is made when somebody asks for it; a link to what was made asks for it too.

What it was made of stays in the session: of anything else it has not been asked for. A link has the names in one list.
"""

from collections.abc import Mapping

import streamlit as st

from transformer_viz.errors import listed
from transformer_viz.views.state import link
from transformer_viz.views.state.controls import QUESTIONS

NAMES = ("lengths", "effect", "gallery", "certificate", "patching", *QUESTIONS)


def start(made_of: Mapping[str, object]) -> None:
    """Asks for what the link that opened the session asks for; once, and before the link is written.

    Args:
        made_of: what each of the page's would be made of, by its name; None where it cannot be made now.
    """
    state = st.session_state
    if "asked_linked" not in state:
        given = [part for part in (link.take("asked") or "").split(",") if part]
        for part in given:
            if part not in NAMES:
                link.complaints().add("asked", part, listed(NAMES))
        state.asked_linked = set(given) & set(NAMES)
    for name in state.asked_linked & set(made_of):
        ask(name, made_of)
    state.asked_linked = state.asked_linked - set(made_of)


def ask(name: str, made_of: Mapping[str, object]) -> None:
    """Somebody asks for this one."""
    st.session_state[f"asked_{name}"] = made_of[name]
    st.session_state[f"stopped_{name}"] = None


def stop(name: str, made_of: Mapping[str, object]) -> None:
    """Somebody has enough of this one; what there is of it stays."""
    st.session_state[f"stopped_{name}"] = made_of[name]


def is_stopped(name: str, made_of: Mapping[str, object]) -> bool:
    """Whether somebody has stopped this one, and nobody asked for it again."""
    return made_of[name] is not None and st.session_state.get(f"stopped_{name}") == made_of[name]


def is_asked(name: str, made_of: Mapping[str, object]) -> bool:
    """Whether somebody has asked for this one."""
    return made_of[name] is not None and st.session_state.get(f"asked_{name}") == made_of[name]


def link_values(made_of: Mapping[str, object]) -> dict[str, str | None]:
    """What the URL says: the names of what a page shows because it was asked for."""
    names = sorted([*(name for name in made_of if is_asked(name, made_of)), *st.session_state.asked_linked])
    return {"asked": ",".join(names) or None}
