"""The browser of whoever starts the app. Streamlit opens it for a script by itself, but not for an `st.App`."""

import asyncio
import threading
from contextlib import suppress

import streamlit as st

from transformer_viz.views.server import owner

# The server listens in the moment after it was told that the app is ready.
_SECONDS = 0.3


def soon() -> None:
    """Opens the app's address shortly after, unless Streamlit was told that nobody sits there (`--server.headless true`)."""
    if not st.get_option("server.headless"):
        asyncio.get_running_loop().call_later(_SECONDS, lambda: threading.Thread(target=_open, daemon=True).start())


def _open() -> None:
    # Streamlit's own way to say where it is and to open that is not public; without it the address is still in the terminal.
    with suppress(Exception):
        from streamlit import cli_util, config
        from streamlit.web.server import server_util

        option = "browser.serverAddress" if config.is_manually_set("browser.serverAddress") else "server.address"
        address = server_util.get_display_address(st.get_option(option) or "localhost")
        cli_util.open_browser(owner.with_secret(server_util.get_url(address)))
