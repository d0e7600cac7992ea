"""A page that was cut off from its server: connected again, to the same one or another, it asks for all of itself.

Streamlit's page does so only where a part of it runs by itself. Without, a server that has never seen the page learns of it by
the next click: it opens the page's link as if somebody came with it, and the click, a part that it was for and files to
download are lost.
"""

from datetime import timedelta

import streamlit as st

_EVERY = timedelta(days=1)
"""A browser counts no further than 24 days."""


@st.fragment(run_every=_EVERY)
def ask_again() -> None:
    """On every page; it draws nothing, and it is enough that it is there."""
