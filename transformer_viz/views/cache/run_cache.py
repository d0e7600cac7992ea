"""What the server holds for all sessions: finished runs and made files, bounded by their bytes together.

Streamlit's own caches are bounded by how many things they hold, and one thing here may be a thousand times as large
as another.
"""

import threading
from collections.abc import Callable, Hashable
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from cachetools import LRUCache, cached

from transformer_viz.trace.snapshots import TrainingSnapshot
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.trace_size import held_bytes

MOST_BYTES = 512_000_000
P = ParamSpec("P")
R = TypeVar("R")


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
    """As `st.cache_resource`: the result is held by the arguments, of which those that begin with `_` do not count.

    What was not asked for the longest is let go where all together would take more than `MOST_BYTES`; what alone is too large,
    or could not be made, is not held. Who asks for what is being made waits for it.
    """
    names, name = list(signature(make).parameters), f"{make.__module__}.{getattr(make, '__qualname__', make)}"

    def key(*args: Any, **kwargs: Any) -> Hashable:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        return name, tuple((each, value) for each, value in sorted(given.items()) if not each.startswith("_"))

    return cached(store, key=key, condition=_condition)(make)


store: LRUCache[Hashable, Any] = LRUCache(MOST_BYTES, getsizeof=size_of)
"""The one of the server."""
_condition = threading.Condition()
