"""The tabs of a page: the files `NAME_tab.py` of a folder, found by looking into it.

A tab is a module with `TITLE`, by which a link calls it, `ORDER` and `show(what)`. It may have `start(…)`, which gives its
controls their values before the link is written, `TELLS`, what in it would tell a hidden answer, in the plural, and what else
its page looks for.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import streamlit as st

from transformer_viz.views.state import display_options

NAME = "transformer-viz-tabs"
"""Of the component, by which a test tells it from others."""


def found(package: str) -> dict[str, ModuleType]:
    """The tabs of a package by their titles, in their order."""
    names = [module.name for module in iter_modules(import_module(package).__path__) if module.name.endswith("_tab")]
    tabs = sorted((import_module(f"{package}.{name}") for name in names), key=lambda tab: tab.ORDER)
    return {tab.TITLE: tab for tab in tabs}


def show(tabs: dict[str, ModuleType], key: str, what: Any) -> None:
    """The tabs; `key` is of the control that says which is open.

    Only the open one is made: the masks' three charts alone would add 200 ms to every text. The row is ours, since Streamlit's
    is drawn anew three times in every run: a tenth of what a browser does for an Enter.
    """

    def chosen() -> None:
        title = (st.session_state.get(f"{key}-row") or {}).get("chosen")
        # What a browser says may be anything, also what no mapping can look up.
        if title in list(tabs):
            st.session_state[key] = title

    data = {"control": key, "titles": list(tabs), "open": st.session_state[key]}
    _component()(key=f"{key}-row", data=data, on_chosen_change=chosen)
    with st.container(key=f"{key}-panel"):
        show_one(tabs[st.session_state[key]], what)


@cache
def _component() -> Any:
    """Registered once a process."""
    css, js = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("tabs.css", "tabs.js"))
    html = '<div class="tabs" role="tablist"></div>'
    # Outside of a shadow, where the page's rules for what has the focus and for the system's own colours reach it.
    return st.components.v2.component(NAME, html=html, css=css, js=js, isolate_styles=False)


def show_one(tab: ModuleType, what: Any) -> None:
    """What is in a tab, or that it would tell a hidden answer."""
    if not (hasattr(tab, "TELLS") and display_options.is_hidden(tab.TELLS)):
        tab.show(what)
