"""`python -m transformer_viz`."""

import sys

from transformer_viz.commands import main


def run() -> None:
    """Entry point: exits with the command's code."""
    sys.exit(main())


if __name__ == "__main__":
    run()
