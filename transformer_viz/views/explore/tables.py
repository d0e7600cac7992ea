"""The tabs below the pictures: which there are, and which one is open."""

from types import ModuleType
from typing import TYPE_CHECKING

import streamlit as st

from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import tabs
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.state import controls, display_options, link, on_demand, persist_widgets

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

TABS = tabs.found("transformer_viz.views.explore")
"""Beside what every tab has: `NEEDS_MODEL`, `is_for`, which says whether it is for a model, `OPENED_BY`, the names in a link
that open it, and `IN_LARGE`, where a projector shows it too."""
OF_A_FILE = tuple(title for title, tab in TABS.items() if not getattr(tab, "NEEDS_MODEL", False))
"""The tabs of a file and of a branch of a search, which go on from no decoding with its model."""
_KEY_OF_PAGE = {"explore": "tables", "search": "search_tables", "open": "open_tables"}
KEYS = tuple(control.key for control in controls.TABS)
"""The tabs and what is in them."""
_IN_TABS = {"code_of_tab", *KEYS} - {*_KEY_OF_PAGE.values(), "what_if_prefix"}


def start(trace: Trace, model: "LoadedModel | None" = None, device: str = "") -> None:
    """The open tab and every tab's controls, from the link or by default; before the link is written."""
    key, shown = _tabs(model)
    opened = [title for title, tab in shown.items() if link.is_waiting(*getattr(tab, "OPENED_BY", ()))]
    first = next(iter(shown))
    link.start(key, tuple(shown), next(iter(opened), first))
    link.leave_out(key, first)
    for tab in shown.values():
        if hasattr(tab, "start"):
            tab.start(trace, model, device)


def asked(trace: Trace, model: "LoadedModel", device: str) -> dict[str, str | None]:
    """What a link asks for, of all tabs that make something on demand: what each would be made of is their `made_of`."""
    tabs = [tab for tab in _tabs(model)[1].values() if hasattr(tab, "made_of")]
    return on_demand.link_values({name: of for tab in tabs for name, of in tab.made_of(trace, model, device).items()})


def show(shown: Shown) -> None:
    """The tabs of this page; only the open one is made. A projector shows no other, and this one only if it is for a room."""
    key, here = _tabs(shown.model)
    # A fragment alone is a run too, in which a closed tab's boxes would be forgotten.
    if not display_options.current().is_large:
        persist_widgets.keep(_IN_TABS)
        tabs.show(here, key, shown)
        return
    persist_widgets.keep({*_IN_TABS, key})
    tab = here[st.session_state[key]]
    if getattr(tab, "IN_LARGE", False):
        tabs.show_one(tab, shown)


def _tabs(model: "LoadedModel | None") -> tuple[str, dict[str, ModuleType]]:
    """Where this page keeps its open tab, and the tabs that it has."""
    key = _KEY_OF_PAGE[st.session_state.link_page]
    if key != "tables" or model is None:
        return key, {title: TABS[title] for title in OF_A_FILE}
    return key, {title: tab for title, tab in TABS.items() if not hasattr(tab, "is_for") or tab.is_for(model)}
