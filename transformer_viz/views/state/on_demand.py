"""What takes seconds is made when somebody asks for it; a link to what was made asks for it too."""

import streamlit as st

from transformer_viz.errors import listed
from transformer_viz.views.state import link

NAMES = ("lengths", "effect", "gallery", "certificate")


def is_linked(name: str) -> bool:
    """Whether the link that opened the session asks for this one, once."""
    state = st.session_state
    if "asked_linked" not in state:
        given = [part for part in (link.take("asked") or "").split(",") if part]
        for part in given:
            if part not in NAMES:
                link.complaints().add("asked", part, listed(NAMES))
        state.asked_linked = set(given) & set(NAMES)
    is_asked = name in state.asked_linked
    state.asked_linked = state.asked_linked - {name}
    return is_asked


def link_values(**made: bool) -> dict[str, str | None]:
    """What the URL says: the names of what a page shows because it was asked for."""
    names = sorted([*(name for name, is_made in made.items() if is_made), *st.session_state.get("asked_linked", ())])
    return {"asked": ",".join(names) or None}
