"""What the terminal shows as the server starts: where to open the app.

Streamlit's own greeting is off (`logger.hideWelcomeMessage`): for it, Streamlit asks the internet for this machine's address.
"""

import os
import socket
from urllib.parse import urlencode

import streamlit as st

from transformer_viz import serving
from transformer_viz.views.server import owner

_EVERY_ADDRESS = {"0.0.0.0", "::"}


def words() -> str:
    """One line for this machine, one for the room if others can come in, and then one for the server's owner."""
    lines = [f"Transformer Viz is at {here()} - Ctrl-C stops it."]
    if _address() in _EVERY_ADDRESS:
        lines.append(f"Others in the room open {url(address_in_network() or socket.gethostname())}")
    if serving.is_shared():
        lines.append(for_owner())
    return "\n".join(lines)


def for_owner() -> str:
    """A line with a new link for the server's owner."""
    return f"You alone, to manage everybody's trainings, open this once: {owner.link(here())}"


def here() -> str:
    """The address of the app for a browser on this machine, with the model that it is to open with."""
    model = os.environ.get(serving.OPENS_VARIABLE)
    query = f"?{urlencode({'checkpoint': model})}" if model else ""
    return url("localhost" if _address() in _EVERY_ADDRESS else _address()) + query


def url(host: str) -> str:
    """The address of the app at a host, for a browser's address bar."""
    scheme = "https" if st.get_option("server.sslCertFile") else "http"
    path = st.get_option("server.baseUrlPath").strip("/")
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}:{st.get_option('server.port')}/{path}"


def _address() -> str:
    return st.get_option("server.address") or "0.0.0.0"


def address_in_network() -> str | None:
    """This machine's address in its network, by the route that it would take; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address that belongs to nobody (RFC 5737)
        except OSError:
            return None
        return probe.getsockname()[0]
