"""The app on a free port and a headless Chromium, for measurements, screenshots and browser tests."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Without the network flags Chromium looks up its maker's hosts at every start.
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
).split()
FOCUS = ".st-key-focus .js-plotly-plot"
DRAWN = f"document.querySelector('{FOCUS}')?.__step !== undefined"
"""True in the page once the focus chart is drawn and the player has found it."""


def chromium() -> str | None:
    """Where the machine's Chromium is, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def app() -> Generator[str]:
    """Starts the app as `make app` does, yields its address, stops it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "transformer_viz", "app", "--port", str(port)],
        cwd=ROOT,
        env={**os.environ, "STREAMLIT_SERVER_HEADLESS": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait_for(f"http://localhost:{port}/_stcore/health")
        yield f"http://localhost:{port}"
    finally:
        # The command starts Streamlit as a child: both are in the new session.
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=20)


def _wait_for(url: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"{url} did not answer within {seconds:.0f} s")
