"""What the server holds for all sessions: finished runs and made files, bounded by their bytes together.

Streamlit's own caches are bounded by how many things they hold, and one thing here may be a thousand times as large
as another.
"""

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import streamlit as st

from transformer_viz.trace.snapshots import TrainingSnapshot
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.trace_size import held_bytes

MOST_BYTES = 512_000_000
P = ParamSpec("P")
R = TypeVar("R")


class Held:
    """Things by key; those that were not asked for the longest are let go where all together would take more bytes.

    Two sessions that ask for the same thing at once wait for one making of it. What could not be made is not held.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes, self.n_bytes = most_bytes, 0
        self._lock = threading.Lock()
        self._things: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}

    def __len__(self) -> int:
        return len(self._things)

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The thing that is held under `key`, or what `make` makes."""
        found, making = self._look_up(key)
        if making is None:
            return found
        with making:
            found, is_missing = self._look_up(key)
            if not is_missing:
                return found
            try:
                made = make()
                self._hold(key, made, size_of(made))
                return made
            finally:
                with self._lock:
                    self._making.pop(key, None)

    def _look_up(self, key: Hashable) -> "tuple[Any, threading.Lock | None]":
        """What is held; or None and the lock under which it is to be made."""
        with self._lock:
            if key in self._things:
                self._things.move_to_end(key)
                return self._things[key][0], None
            return None, self._making.setdefault(key, threading.Lock())

    def _hold(self, key: Hashable, thing: Any, n_bytes: int) -> None:
        with self._lock:
            self._things[key] = (thing, n_bytes)
            self.n_bytes += n_bytes
            # The newest too, where it alone is too large.
            while self.n_bytes > self.most_bytes:
                self.n_bytes -= self._things.popitem(last=False)[1][1]


def size_of(thing: Any) -> int:
    """Bytes of a run, of several, of moments, or of a file."""
    if isinstance(thing, bytes):
        return len(thing)
    if isinstance(thing, Trace):
        return held_bytes(thing)
    if isinstance(thing, TrainingSnapshot):
        return held_bytes(thing.written) + held_bytes(thing.forced)
    assert isinstance(thing, list | tuple), f"the size of {type(thing).__name__} is not known"
    return sum(map(size_of, thing))


def held(make: Callable[P, R]) -> Callable[P, R]:
    """As `st.cache_resource`: the result is held by the arguments, of which those that begin with `_` do not count."""
    names, name = list(signature(make).parameters), f"{make.__module__}.{getattr(make, '__qualname__', make)}"

    @functools.wraps(make)
    def holding(*args: P.args, **kwargs: P.kwargs) -> R:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        counted = tuple((each, value) for each, value in sorted(given.items()) if not each.startswith("_"))
        return everything().get((name, counted), lambda: make(*args, **kwargs))

    return holding


@st.cache_resource(show_spinner=False)
def everything() -> Held:
    """The one store of the server."""
    return Held(MOST_BYTES)
