"""“Glossary”: the terms of art of a page, each in a sentence, in a row of its controls."""

from html import escape

import streamlit as st

from transformer_viz.views import glossary


def popover(page: str) -> None:
    """The terms of this page, the basics in sight and the others folded; a widget's own is also beside its label."""
    with st.popover("Glossary", icon=":material/dictionary:"):
        terms = glossary.of_page(page)
        n_basics = sum(name in glossary.BASICS for name in terms)
        basics, others = (_list(names) for names in (terms[:n_basics], terms[n_basics:]))
        words = f"{basics}<details><summary>{len(terms) - n_basics} more terms</summary>{others}</details>"
        # On a phone they are longer than the window, and keys scroll only what can have the focus.
        st.html(f'<div role="group" aria-label="Glossary" tabindex="0">{words}</div>')


def _list(names: list[str]) -> str:
    words = (f"<li><b>{escape(name)}</b>: {escape(glossary.sentence(name))}</li>" for name in names)
    return f"<ul>{''.join(words)}</ul>"
