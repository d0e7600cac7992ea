"""`python -m transformer_viz`."""

import io
import sys

from transformer_viz.commands import main


def run() -> None:
    """Entry point: exits with the command's code."""
    # A terminal or pipe that is not UTF-8 gets an escape instead of an error.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main())


if __name__ == "__main__":
    run()
