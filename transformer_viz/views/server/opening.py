"""The browser of whoever starts the app. Streamlit opens it for a script by itself, but not for an `st.App`."""

import asyncio
import threading
import webbrowser
from contextlib import suppress

import streamlit as st

from transformer_viz.views.server import greeting

DELAY_S = 0.3
"""The server listens in the moment after it was told that the app is ready."""


def soon() -> None:
    """Opens the app's address shortly after, unless Streamlit was told that nobody sits there (`--server.headless true`)."""
    if not st.get_option("server.headless"):
        asyncio.get_running_loop().call_later(DELAY_S, lambda: threading.Thread(target=_open, daemon=True).start())


def _open() -> None:
    # Without a browser the address is still in the terminal. A command line is no place for the owner's token: other users of
    # the machine can read it.
    with suppress(Exception):
        webbrowser.open(greeting.here())
