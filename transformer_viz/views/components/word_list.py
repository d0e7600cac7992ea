"""“Words”: the terms of art of a page, each in a sentence, in a row of its controls."""

import streamlit as st

from transformer_viz import glossary
from transformer_viz.views.components.markdown import literal


def popover(page: str) -> None:
    """All terms of this page; a widget's own is also beside its label, on hover and focus."""
    with st.popover("Words", icon=":material/dictionary:"):
        st.markdown("\n".join(f"- **{literal(name)}**: {literal(glossary.sentence(name))}" for name in glossary.of_page(page)))
