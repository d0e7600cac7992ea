"""Start the app in the browser."""

import argparse
import subprocess
import sys
from pathlib import Path

from transformer_viz.errors import OptionError

HELP = "start the app"
_ROOT = Path(__file__).resolve().parents[2]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where it listens."""
    parser.add_argument("--port", type=int, default=8501, help="(8501)")
    parser.add_argument(
        "--address", default="localhost", help="localhost is this machine only; 0.0.0.0 lets the room in (localhost)"
    )


def run(arguments: argparse.Namespace) -> int:
    """The app's exit code; it runs until it is stopped."""
    if not 1 <= arguments.port <= 65535:
        raise OptionError(f"port {arguments.port} is not possible; it is a number from 1 to 65535.")
    if not (_ROOT / "app.py").is_file():
        raise OptionError("app.py is not beside the package. Start it from a checkout of the repository: streamlit run app.py")
    command = [sys.executable, "-m", "streamlit", "run", "app.py"]
    options = [f"--server.port={arguments.port}", f"--server.address={arguments.address}"]
    # From the root, because Streamlit looks for its settings in the folder where it starts.
    return subprocess.run([*command, *options], cwd=_ROOT, check=False).returncode
