"""Ctrl-C ends the app as it ends any Streamlit script: quietly, with exit code 0.

uvicorn, which an `st.App` runs under, ends as quietly and then raises the signal once more: "Aborted!", exit code 1.
"""

import signal
import threading
from typing import Any


def quietly() -> None:
    """From now on, where the signals come to a uvicorn of this thread; any other server is left alone."""
    server: Any = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    if hasattr(server, "should_exit") and threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: _end(server))


def _end(server: Any) -> None:
    # Who asks twice waits for nobody.
    server.force_exit = bool(server.should_exit)
    server.should_exit = True
