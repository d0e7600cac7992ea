"""Start the app in the browser."""

import argparse
import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from transformer_viz import places, serving
from transformer_viz.commands import _shared
from transformer_viz.errors import OptionError

HELP = "start the app"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where it listens, and what else Streamlit should know."""
    parser.add_argument("--port", type=_shared.whole(1, 65535), default=8501, metavar="N", help="(8501)")
    parser.add_argument(
        "--address", default="localhost", help="localhost is this machine only; 0.0.0.0 lets the room in (localhost)"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name under which the app may be opened, beside this machine's own; may be given several times",
    )
    parser.add_argument(
        "streamlit",
        nargs="*",
        metavar="ARGUMENT",
        help="after --: passed on to Streamlit, as in: app -- --server.headless true",
    )


def run(arguments: argparse.Namespace) -> int:
    """The app's exit code; it runs until it is stopped."""
    if find_spec("streamlit") is None:
        raise ModuleNotFoundError(name="streamlit")
    serving.limits()  # a wrong one is said before anything is started
    serving.allow_hosts(arguments.allow_host)
    _check_free(arguments.address, arguments.port)
    options = [f"--server.port={arguments.port}", f"--server.address={arguments.address}", *arguments.streamlit]
    return _become([sys.executable, "-m", "streamlit", "run", "app.py", *options])


def _check_free(address: str, port: int) -> None:
    """Streamlit's own word on this is long, and its exit code looks like a verdict."""
    try:
        family, _, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.create_server(where[:2], family=family):
            pass
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "the address is not possible"
        raise OptionError(f"The app cannot listen on {address}, port {port}: {reason}. Choose another with --port.") from error


def _become(command: list[str]) -> int:
    """Runs Streamlit where `app.py` lies, where it finds its settings."""
    if more := os.environ.get(places.FOLDERS_VARIABLE):
        os.environ[places.FOLDERS_VARIABLE] = str(Path(more).absolute())  # seen from where the command was typed
    if os.name == "nt":  # there a replaced process would look finished to the shell
        return subprocess.run(command, cwd=places.ROOT, check=False).returncode
    # Streamlit takes this process's place, so that a signal to it stops the app and leaves nothing behind.
    os.chdir(places.ROOT)
    os.execv(command[0], command)
