"""“Glossary”: the button that opens a page's terms, each explained in a sentence."""

from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

import streamlit as st

from transformer_viz.views import glossary


def popover(page: str) -> None:
    """The terms of this page, the basics in sight and the others folded, and a box that looks one up among those of all pages;
    a widget's own is also beside its label."""
    with st.popover("Glossary", icon=":material/dictionary:"):
        _glossary(page)


@st.fragment
def _glossary(page: str) -> None:
    looks: Any = {"placeholder": "Type a word, then press Enter", "max_chars": 40, "icon": ":material/search:"}
    wanted = st.text_input("Look up a term", key="glossary_wanted", label_visibility="collapsed", **looks)
    # On a phone they are longer than the window, and keys scroll only what can have the focus.
    words = _found(wanted) if wanted.strip() else _of_page(page)
    st.html(f'<div role="group" aria-label="Glossary" tabindex="0">{words}</div>')


@cache
def _of_page(page: str) -> str:
    terms = glossary.of_page(page)
    n_basics = sum(name in glossary.BASICS for name in terms)
    basics, others = _list(terms[:n_basics]), _list(terms[n_basics:])
    return f"{basics}<details><summary>{len(terms) - n_basics} more terms</summary>{others}</details>"


def _found(wanted: str) -> str:
    names = glossary.found(wanted)
    return _list(names) if names else f"<p>No term has “{escape(wanted)}”.</p>"


def _list(names: Sequence[str]) -> str:
    words = (f"<li><b>{escape(name)}</b>: {escape(glossary.sentence(name))}</li>" for name in names)
    return f"<ul>{''.join(words)}</ul>"
