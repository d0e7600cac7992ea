"""How every page looks: letters for a projector, and whether the right answer is shown. Needs no model."""

from dataclasses import dataclass

import streamlit as st


@dataclass(frozen=True, kw_only=True)
class Looks:
    """What was chosen in the popover."""

    is_large: bool
    with_answer: bool


def start() -> None:
    """First values, before the popover or anything that depends on them is drawn."""
    for key in ("projector", "hide_answer"):
        st.session_state[key] = st.session_state.get(key, False)


def current() -> Looks:
    """As they stand."""
    return Looks(is_large=st.session_state.projector, with_answer=not st.session_state.hide_answer)


def popover() -> None:
    """The two switches, in a row of controls."""
    with st.popover("View", icon=":material/visibility:", help="Projector, hide the answer"):
        st.toggle("Projector: large letters, maps only", key="projector")
        st.toggle("Hide the answer", key="hide_answer", help="No ring on the true letter, no mark on a wrong one")
