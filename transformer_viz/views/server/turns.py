"""How many pages are made at the same moment.

Where a whole class clicks at once, thirty threads share one interpreter with the server's own, which answers everybody and
came last: others waited for seconds. Two at a time, first come first served, are done no later, and it is never far from its
turn.
"""

import threading
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager

AT_ONCE = 2
LONG = 0.5
"""Seconds after which a page that is still being made holds up no other."""

_lock = threading.Lock()
_waiting: deque[threading.Event] = deque()
_begun: dict[int, float] = {}
"""When each thread's turn began."""


@contextmanager
def turn() -> Generator[None]:
    """Waits for a turn, and has it as long as the block lasts."""
    _begin()
    try:
        yield
    finally:
        _end()


@contextmanager
def passed_on() -> Generator[None]:
    """Around what only waits: others may have this thread's turn meanwhile. Without one, nothing."""
    has_turn = threading.get_ident() in _begun
    if has_turn:
        _end()
    try:
        yield
    finally:
        if has_turn:
            _begin()


def _begin() -> None:
    mine = threading.Event()
    with _lock:
        _waiting.append(mine)
        _wake()
    while not _has_begun(mine):
        pass


def _has_begun(mine: threading.Event) -> bool:
    """Waits to be the first in the queue, then until there is a turn; whether it has it."""
    mine.wait()
    with _lock:
        mine.clear()
        seconds = _until_next()
        if seconds <= 0:
            _waiting.popleft()
            _begun[threading.get_ident()] = time.monotonic()
            _wake()
            return True
    if not mine.wait(seconds):
        mine.set()
    return False


def _end() -> None:
    with _lock:
        del _begun[threading.get_ident()]
        _wake()


def _wake() -> None:
    """The first in the queue looks whether there is a turn."""
    if _waiting:
        _waiting[0].set()


def _until_next() -> float:
    """Seconds until the next turn, if nobody is done before."""
    begun = sorted(_begun.values())
    return begun[-AT_ONCE] + LONG - time.monotonic() if len(begun) >= AT_ONCE else 0
