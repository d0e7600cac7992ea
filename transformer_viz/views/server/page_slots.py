"""Limits how many pages are drawn at the same time.

Where a whole class clicks at once, thirty threads would share one interpreter with the server's own, which answers everybody
and would come last. Two at a time are done no later.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager

LONGEST_WAIT = 2.0
"""Seconds after which a page is drawn anyway: one that takes long holds up no other."""
_slots = threading.Semaphore(2)
_thread = threading.local()


@contextmanager
def page_slot() -> Generator[None]:
    """Waits until fewer than two pages are being drawn, for two seconds at most; the block draws one."""
    _thread.has_slot = _slots.acquire(timeout=LONGEST_WAIT)
    try:
        yield
    finally:
        release_slot()


def release_slot() -> None:
    """Gives the slot of this thread's page back, if it has one: before it waits, and others can be drawn meanwhile."""
    if getattr(_thread, "has_slot", False):
        _thread.has_slot = False
        _slots.release()
