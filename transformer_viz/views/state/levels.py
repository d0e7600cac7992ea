"""Two levels of controls: Start has what a first visitor needs, the switch *All controls* shows the others too.

What is of All is drawn where all controls are shown, or where it has another value than at first: what changes the picture can
always be seen and set back.
"""

import streamlit as st

from transformer_viz.language import say
from transformer_viz.views.state import link

KEY = "all_controls"
_OF_ALL = {
    *("decoding", "beam", "temperature", "seed", "alpha", "search_length", "forced_target"),
    *("measure", "cause_mode", "unit", "device"),
    *("generation", "chat", "shortlist", "source_language", "target_language", "overview_of", "head_order"),
}
"""Controls of All, by their names in a link: one that has any of them opens with All. Layer and head are not among them, since
a click on a small map sets these too."""


def start() -> None:
    """Before anything of the page is drawn."""
    link.is_on(KEY, _default())


def is_all() -> bool:
    """Tells whether all controls are shown."""
    return bool(st.session_state.get(KEY))


def switch() -> None:
    """The switch, in a row of controls."""
    link.toggle(say("All controls"), key=KEY, default=_default())


def _default() -> bool:
    """The meaning of a link without the switch. While it has it, the other one is left out: so the link stays as it is when
    another control changes, and every write of it would be an entry of the browser's history."""
    here = link.address()
    return here[KEY] == "false" if KEY in here else not _OF_ALL.isdisjoint(here)
