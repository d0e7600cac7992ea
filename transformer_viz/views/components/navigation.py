"""The pages' links, in a row above every page; on a phone only the link of this page has its name beside its sign.

Streamlit's own navigation becomes a drawer on a phone, which covers the page, says nowhere which one it is, and stays open.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import streamlit as st

from transformer_viz.views import pages


def show(views: list[ModuleType]) -> Callable[[], None]:
    """Draws the links, and names the page that is open in its title and heading; what is returned draws it.

    Args:
        views: the pages' modules, in the order of their links.
    """
    linked = list(map(_page, views))
    chosen = st.navigation(linked, position="hidden")
    st.set_page_config(page_title=f"{chosen.title} · Transformer Viz")
    with st.container(horizontal=True, key="pages"):
        for page in linked:
            st.page_link(page, width="content")
    _component()(key="navigation", data={"title": chosen.title, "place": linked.index(chosen)}, height=1)
    return chosen.run


def links(titles: Sequence[str]) -> None:
    """Links to other pages by their titles, for a page that has nothing to show."""
    with st.container(horizontal=True, key="other-pages"):
        for view in pages():
            if view.TITLE in titles:
                st.page_link(_page(view), width="content")


def go(title: str) -> None:
    """To another page; not from a callback, which has no page to leave."""
    st.switch_page(_page(next(view for view in pages() if title == view.TITLE)))


def _page(view: ModuleType) -> Any:
    return st.Page(view.show, title=view.TITLE, icon=view.ICON, url_path=view.TITLE.lower(), default=view.ORDER == 0)


@cache
def _component() -> Any:
    """Registered once a process: the heading, for those who do not see the link that is marked, and what the row is."""
    script = Path(__file__).with_name("navigation.js").read_text(encoding="utf-8")
    return st.components.v2.component("transformer-viz-navigation", html="<h1></h1>", js=script, isolate_styles=False)
