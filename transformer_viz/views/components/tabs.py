"""The tabs of a page: the files `NAME_tab.py` of a folder, found by looking into it.

A tab is a module with `TITLE`, by which a link calls it, `ORDER` and `show(what)`. It may have `TELLS`, what in it would tell a
hidden answer, in the plural, and what else its page looks for.
"""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from transformer_viz.views.state import display_options, link


def found(package: str) -> dict[str, ModuleType]:
    """The tabs of a package by their titles, in their order."""
    names = [module.name for module in iter_modules(import_module(package).__path__) if module.name.endswith("_tab")]
    tabs = sorted((import_module(f"{package}.{name}") for name in names), key=lambda tab: tab.ORDER)
    return {tab.TITLE: tab for tab in tabs}


def show(tabs: dict[str, ModuleType], key: str, what: Any) -> str:
    """The tabs; `key` is of which is open, whose title is returned. Only that one is drawn: the masks' three charts alone would
    add 200 ms to every text."""
    title, place = link.tabs(list(tabs), key=key)
    with place:
        show_one(tabs[title], what)
    return title


def show_one(tab: ModuleType, what: Any) -> None:
    """Draws what is in a tab, or says that it would tell a hidden answer."""
    if not (hasattr(tab, "TELLS") and display_options.is_hidden(tab.TELLS)):
        tab.show(what)
