"""The app on a free port and a headless Chromium, for measurements, screenshots and browser tests."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Without the network flags Chromium looks up its maker's hosts at every start.
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
).split()


def chromium() -> str | None:
    """Where the machine's Chromium is, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@dataclass(frozen=True)
class Server:
    """A Streamlit server that runs."""

    url: str
    pid: int


@contextmanager
def server(
    script: Path | None = None,
    environment: Mapping[str, str] | None = None,
    address: str = "localhost",
    folder: Path = ROOT,
    output: Path | None = None,
) -> Generator[Server]:
    """Starts the app, or another Streamlit script, on a free port; stops it at the end.

    Args:
        script: what Streamlit runs instead of the app.
        environment: more variables.
        address: where it listens.
        folder: where it is started.
        output: a file for what it prints.
    """
    port = free_port("127.0.0.1" if address == "localhost" else address)
    ours = ["transformer_viz", "app", "--port", str(port), "--address", address]
    other = ["streamlit", "run", str(script), f"--server.port={port}", f"--server.address={address}"]
    with (output or Path(os.devnull)).open("wb") as printed:
        process = subprocess.Popen(
            [sys.executable, "-m", *(ours if script is None else other)],
            cwd=folder,
            env={**os.environ, "STREAMLIT_SERVER_HEADLESS": "true", **(environment or {})},
            stdout=printed,
            stderr=printed,
            start_new_session=True,
        )
    try:
        wait_for(f"http://{address}:{port}/_stcore/health")
        yield Server(f"http://{address}:{port}", process.pid)
    finally:
        # The app may have started trainings: they are in the same session.
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=20)


def free_port(address: str = "127.0.0.1") -> int:
    """A port of an address at which nobody listens."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


def wait_for(url: str, seconds: float = 60) -> None:
    """Until something answers there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.02)
    raise TimeoutError(f"{url} did not answer within {seconds:.0f} s")
