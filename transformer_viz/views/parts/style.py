"""The few rules by which the page differs from Streamlit's own looks: less air, nothing else."""

import streamlit as st

_CSS = """
<style>
.stMainBlockContainer { padding: 1rem 2.2rem 2rem; max-width: 1680px; }
.stVerticalBlock { gap: 0.7rem; }
.st-key-bar [data-testid="stTextInput"] { flex: 1 1 340px; }
@media (max-width: 640px) { .stMainBlockContainer { padding: 1rem 0.7rem 1rem; } }
</style>
"""


def apply() -> None:
    """Once a run, before anything is drawn. The text is ours alone."""
    st.html(_CSS)
