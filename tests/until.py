"""The only way in which a test waits: for a condition, never for a time."""

import time
from collections.abc import Callable


def until(holds: Callable[[], bool], seconds: float = 120) -> None:
    """Returns once it holds; fails if it does not within `seconds`."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.02)
