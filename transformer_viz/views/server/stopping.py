"""Ctrl-C ends the app as it ends any Streamlit script: quietly, with exit code 0.

uvicorn, which an `st.App` runs under, ends as quietly and then raises the signal once more: "Aborted!", exit code 1.
"""

import signal
import threading
from typing import Any

from transformer_viz.views.server import running


def quietly() -> None:
    """From now on, where the signals come to a uvicorn of this thread; any other server is left alone."""
    server = running.uvicorn_server()
    if server is not None and threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: _end(server))


def _end(server: Any) -> None:
    # Who asks twice waits for nobody.
    server.force_exit = bool(server.should_exit)
    server.should_exit = True
