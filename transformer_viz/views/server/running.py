"""The uvicorn that an `st.App` runs under. Streamlit makes it and hands it to nobody; its signals do."""

import signal
from typing import Any


def uvicorn_server() -> Any | None:
    """The server to which Ctrl-C goes; None where that is no uvicorn, or it was taken over already."""
    server = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    return server if hasattr(server, "should_exit") else None


def bound_messages(n_bytes: int) -> None:
    """Lets no browser send a larger message from now on. uvicorn collects one whole before anything else sees it."""
    config = getattr(uvicorn_server(), "config", None)
    if hasattr(config, "ws_max_size"):
        config.ws_max_size = n_bytes
