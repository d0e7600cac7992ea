"""The pages' links, in a row above every page; on a phone only the link of this page has its name beside its sign.

Streamlit's own navigation becomes a drawer on a phone, which covers the page, says nowhere which one it is, and stays open.
"""

from collections.abc import Sequence
from html import escape
from types import ModuleType
from typing import Any
from urllib.parse import quote

import streamlit as st

from transformer_viz import app_folders, locks
from transformer_viz.language import languages, say
from transformer_viz.views import pages, path
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.state import visit_language

_EVERY_SECONDS = 5.0
MARK = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 15 15" width="22" height="22" fill="#2f6f9f">'
    + "".join(
        f'<rect x="{5 * column}" y="{5 * row}" width="4.4" height="4.4" rx="0.8" opacity="{1 if row + column == 2 else 0.25}"/>'
        for row in range(3)
        for column in range(3)
    )
    + "</svg>"
)
"""The sign of the app: a map of attention that reads a word from its end."""
_HERE = """<style>
@media (forced-colors: active) {
  .st-key-HERE a, .st-key-HERE a * {
    forced-color-adjust: none; background: Highlight !important; color: HighlightText !important;
  }
}
@media (max-width: 640px) {
  .st-key-pages > :not(:has(.st-key-HERE, .language)) { flex: 1 1 0; min-width: 24px; max-width: 40px; }
  /* The names of the other pages are still read aloud. */
  .st-key-pages > :not(:has(.st-key-HERE)) p {
    position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  }
}
</style>"""
"""The looks of the link of this page. It has no key of its own: the browser would move the link that had this key before to
here from where it was, also while somebody presses it."""


def show(views: list[ModuleType]) -> ModuleType:
    """Draws the links, and names the page that is open in its title and heading.

    The page is not run as Streamlit's page but as a part of the main script: so a key that two pages have is one widget, and
    what the address says of it is believed on both when somebody goes Back.

    Args:
        views: the pages' modules, in the order of their links.

    Returns:
        The module of the page that is open.
    """
    linked = list(map(_page, views))
    chosen = st.navigation(linked, position="hidden")
    here = next(view for view, page in zip(views, linked, strict=True) if page.title == chosen.title)
    st.set_page_config(page_title=f"{chosen.title} · Transformer Viz")
    st.html(f'<h1 class="unseen">{escape(chosen.title)}</h1>{_HERE.replace("HERE", _key(chosen))}')
    with st.container(horizontal=True, vertical_alignment="center", key="pages"):
        st.html(
            f'<div class="brand"><img src="data:image/svg+xml,{quote(MARK)}" alt=""><b>Transformer Viz</b></div>',
            width="content",
        )
        for page in linked:
            with st.container(width="content", key=_key(page)):
                st.page_link(page, width="content")
        _switch_of_languages()
        if here.TITLE != "Train" and _training_at_work() is not None:
            with st.container(width="content", key="page-training"):
                _link_to_training(next(page for page in linked if page.url_path == "train"))
    return here


def _key(page: Any) -> str:
    return f"page-{page.url_path}"


def _switch_of_languages() -> None:
    """A link for each other language, which `screen.js` leads to this same place. It is in that language, not in the page's."""
    others = (
        f'<a class="language" href="?{visit_language.KEY}={code}" hreflang="{code}" lang="{code}" target="_self">{name}</a>'
        for code, name in visit_language.NAMES.items()
        if code in languages() and code != visit_language.current()
    )
    st.html("".join(others), width="content")


def _training_at_work() -> str | None:
    """The name of the training that is at work. It asks files alone, so that no page waits for PyTorch."""
    held = (lock.parent.name for lock in (app_folders.trained() / ".jobs").glob("*/lock") if locks.is_locked(lock))
    return next(held, None)


@st.fragment(run_every=_EVERY_SECONDS)
@visit_language.spoken
def _link_to_training(page: Any) -> None:
    """Goes when the training ends."""
    if (name := _training_at_work()) is not None:
        words = say("{name} is learning", name=literal(name))
        st.page_link(page, label=words, icon=":material/hourglass_top:", width="content")


def links(titles: Sequence[str]) -> None:
    """Links to other pages by their titles, for a page that has nothing to show."""
    with st.container(horizontal=True, key="other-pages"):
        for view in pages():
            if view.TITLE in titles:
                st.page_link(_page(view), width="content")


def _page(view: ModuleType) -> Any:
    return st.Page(view.show, title=say(view.TITLE), icon=view.ICON, url_path=path(view), default=view.ORDER == 0)
