"""Draws a page anew when its browser is connected again after a break, to the same server or another.

Streamlit does so only for pages with a fragment that runs by itself. Without one, a new server first hears of the page at the
next click: it opens the page's link as for a new visitor, and the click and files to download are lost.
"""

from datetime import timedelta

import streamlit as st

_EVERY = timedelta(days=1)
"""A browser counts no further than 24 days."""


@st.fragment(run_every=_EVERY)
def ask_again() -> None:
    """On every page; it draws nothing, and it is enough that it is there."""
