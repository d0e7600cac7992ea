"""The tabs below the pictures: which there are, and which one is open."""

from types import ModuleType
from typing import TYPE_CHECKING

import streamlit as st

from transformer_viz.trace.trace import Trace
from transformer_viz.views.explore import by_length, export, heads, masks_in_force, numbers, this_run, what_if
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.state import controls, link, on_demand, persist_widgets

if TYPE_CHECKING:
    from transformer_viz.checkpoints import Checkpoint

TABS: dict[str, ModuleType] = {tab.TITLE: tab for tab in (this_run, what_if, heads, by_length, masks_in_force, numbers, export)}
"""Each is a module with `TITLE` and `show(shown)`; a link calls it by its title."""
_OF_A_DECODING = (what_if, by_length)
"""They go on from a decoding with its model, or speak of that: a branch of a search and a file have none of them."""
OF_A_FILE = tuple(title for title, tab in TABS.items() if tab not in _OF_A_DECODING)
_KEY_OF_PAGE = {"explore": "tables", "search": "search_tables", "open": "open_tables"}
KEYS = tuple(control.key for control in controls.TABS)
"""The tabs and what is in them."""
_IN_TABS = {"code_of_tab", *KEYS} - {*_KEY_OF_PAGE.values(), "what_if_prefix"}


def start(trace: Trace, checkpoint: "Checkpoint | None" = None, device: str = "") -> None:
    """The open tab and every tab's controls, from the link or by default; before the link is written."""
    key, titles = _tabs()
    is_of_a_decoding = what_if.TITLE in titles
    if is_of_a_decoding and what_if.is_linked():
        asked = what_if.TITLE
    else:
        asked = heads.TITLE if link.is_waiting("tint") else titles[0]
    link.start(key, titles, asked)
    link.leave_out(key, titles[0])
    heads.start(trace)
    if is_of_a_decoding and checkpoint is not None:
        what_if.start(trace, checkpoint, device)
        on_demand.start(by_length.made_of(checkpoint, device))


def show(shown: Shown) -> None:
    """The tabs of this page; only the open one is made."""
    key, titles = _tabs()
    # A fragment alone is a run too, in which a closed tab's boxes would be forgotten.
    persist_widgets.keep(_IN_TABS)
    # With on_change="rerun" only the open tab is made. The masks' three charts would add 200 ms to every text.
    for title, place in zip(titles, st.tabs(titles, key=key, on_change="rerun"), strict=True):
        with place:
            if place.open:
                TABS[title].show(shown)


def _tabs() -> tuple[str, tuple[str, ...]]:
    """Where this page keeps its open tab, and the titles of those that it has."""
    key = _KEY_OF_PAGE[st.session_state.link_page]
    return key, tuple(TABS) if key == "tables" else OF_A_FILE
