"""The uvicorn that an `st.App` runs under: how large a message it takes, and how it ends.

Streamlit makes it, has settings for neither, and hands it to nobody; but the signals go to one of its methods.
"""

import signal
import threading
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


def end_quietly() -> None:
    """From now on Ctrl-C ends the app as it ends any Streamlit script, with exit code 0; another server is left alone.

    uvicorn by itself ends as quietly and then raises the signal once more: "Aborted!", exit code 1.
    """
    server = uvicorn_server()
    if server is not None and threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: _end(server))


def _end(server: Any) -> None:
    # Who asks twice waits for nobody.
    server.force_exit = bool(server.should_exit)
    server.should_exit = True
