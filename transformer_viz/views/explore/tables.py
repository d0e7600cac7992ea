"""The tabs below the pictures: which there are, and which one is open."""

from types import ModuleType
from typing import TYPE_CHECKING

from transformer_viz.views.components import tabs
from transformer_viz.views.explore import this_run
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.state import display_options, link

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

TABS = tabs.found("transformer_viz.views.explore")
"""Beside what every tab has: `NEEDS_MODEL`, `is_for`, which says whether it is for a model, and `IN_LARGE`, where a projector
shows it too."""
OF_A_FILE = tuple(title for title, tab in TABS.items() if not getattr(tab, "NEEDS_MODEL", False))
"""The tabs of a file and of a branch of a search, and of any other run than a greedy one, from which nothing goes on."""


def show(shown: Shown) -> None:
    """Draws the tabs. On a projector the open tab is drawn alone, and only if it has `IN_LARGE`."""
    here, key = _tabs(shown.model if shown.is_decoded else None), "explore_tab"
    if display_options.current().is_large:
        title = link.option(key, list(here))
        if getattr(here[title], "IN_LARGE", False):
            tabs.show_one(here[title], shown)
    else:
        this_run.show(shown)
        tabs.show(here, key, shown)


def _tabs(model: "LoadedModel | None") -> dict[str, ModuleType]:
    if model is None:
        return {title: TABS[title] for title in OF_A_FILE}
    return {title: tab for title, tab in TABS.items() if not hasattr(tab, "is_for") or tab.is_for(model)}
