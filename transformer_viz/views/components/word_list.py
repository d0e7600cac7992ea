"""“Glossary”: the terms of art of a page, each in a sentence, in a row of its controls."""

from html import escape

import streamlit as st

from transformer_viz.views import glossary


def popover(page: str) -> None:
    """All terms of this page; a widget's own is also beside its label, on hover and focus."""
    with st.popover("Glossary", icon=":material/dictionary:"):
        words = (f"<li><b>{escape(name)}</b>: {escape(glossary.sentence(name))}</li>" for name in glossary.of_page(page))
        # On a phone they are longer than the window, and keys scroll only what can have the focus.
        st.html(f'<div role="group" aria-label="Glossary" tabindex="0"><ul>{"".join(words)}</ul></div>')
