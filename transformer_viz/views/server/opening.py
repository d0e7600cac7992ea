"""Prints the app's address in the terminal, and opens it in the browser of whoever starts the app.

Streamlit opens no browser for an `st.App`, and to print an address it would ask a server on the internet for this machine's.
"""

import asyncio
import os
import socket
import threading
import webbrowser
from contextlib import suppress
from urllib.parse import urlencode

import streamlit as st

from transformer_viz import server_settings

DELAY_S = 0.3
"""The server listens in the moment after it was told that the app is ready."""


def here() -> str:
    """The address of the app for a browser on this machine, with the model that it is to open with."""
    model = os.environ.get(server_settings.OPENS_VARIABLE)
    query = f"?{urlencode({'checkpoint': model})}" if model else ""
    return _url(st.get_option("server.address") or "0.0.0.0") + query


def for_others() -> str | None:
    """The address of the app for others in the same network, where the server listens to all."""
    if st.get_option("server.address") not in (None, "", "0.0.0.0", "::"):
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect(("192.0.2.1", 9))  # by the route to an address that belongs to nobody (RFC 5737); nothing is sent
        return _url(probe.getsockname()[0])
    return _url(socket.gethostname())


def open_browser() -> None:
    """Opens the app shortly after, unless Streamlit was told that nobody sits there (`--server.headless true`)."""
    if not st.get_option("server.headless"):
        asyncio.get_running_loop().call_later(DELAY_S, lambda: threading.Thread(target=_open, daemon=True).start())


def _open() -> None:
    # Without a browser the address is still in the terminal. A command line is no place for the owner's token: other users of
    # the machine can read it.
    with suppress(Exception):
        webbrowser.open(here())


def _url(host: str) -> str:
    host = "localhost" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    scheme, path = "https" if st.get_option("server.sslCertFile") else "http", st.get_option("server.baseUrlPath").strip("/")
    return f"{scheme}://{host}:{st.get_option('server.port')}/{path}"
