"""What the server holds for all sessions: finished runs and made files, bounded by their bytes together.

Streamlit's own caches are bounded by how many things they hold, and one thing here may be a thousand times as large
as another.
"""

import threading
from collections.abc import Callable, Hashable
from contextlib import suppress
from inspect import signature
from typing import Any, Generic, ParamSpec, TypeVar

from cachetools import LRUCache, cached

from transformer_viz.analysis.alignment_heads import AlignmentHeads
from transformer_viz.analysis.counter_proof import CounterProof
from transformer_viz.analysis.faithfulness import MeanCurve
from transformer_viz.analysis.knock_out import KnockOut
from transformer_viz.analysis.length_report import ByLength
from transformer_viz.analysis.mask_report import MaskReport
from transformer_viz.analysis.patching import PatchedRun, Patching
from transformer_viz.analysis.verdict import Verdicts
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.inside import Inside
from transformer_viz.trace.remembered import Remembered
from transformer_viz.trace.snapshots import TrainingSnapshot
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.trace_size import held_bytes

MOST_BYTES = 512_000_000
_REPORT = 100_000
"""Bytes of what a check of masks has found, decoded strings of all lengths, or what a patched run wrote, roughly."""
P = ParamSpec("P")
R = TypeVar("R")


def size_of(thing: Any) -> int:
    """Bytes of a run, of several, of moments, of a report, of what was found on trial or by patching, or of a file."""
    if isinstance(thing, bytes):
        return len(thing)
    if isinstance(thing, Trace):
        return held_bytes(thing)
    if isinstance(thing, Attribution):
        return thing.values.nbytes
    if isinstance(thing, Inside):
        return sum(array.nbytes for array in thing.arrays.values())
    if isinstance(thing, Remembered):
        return thing.nbytes
    if isinstance(thing, Patching):
        return sum(effects.nbytes for effects in thing.effects.values())
    if isinstance(thing, TrainingSnapshot):
        return held_bytes(thing.written) + held_bytes(thing.forced)
    if isinstance(thing, CounterProof):
        return thing.weights.nbytes + sum(each.weights.nbytes for each in thing.moved)
    if isinstance(thing, MaskReport | ByLength | AlignmentHeads | Verdicts | KnockOut | MeanCurve | PatchedRun):
        return _REPORT
    assert isinstance(thing, list | tuple), f"the size of {type(thing).__name__} is not known"
    return sum(map(size_of, thing))


class Held(Generic[P, R]):
    """A function whose results are held by the arguments, of which those that begin with `_` do not count.

    As `st.cache_resource`, but what was not asked for the longest is let go where all together would take more than
    `MOST_BYTES`; what alone is too large, or could not be made, is not held. Who asks for what is being made waits for it.
    """

    def __init__(self, make: Callable[P, R]) -> None:
        self.make = make
        self._names = list(signature(make).parameters)
        self._name = f"{make.__module__}.{getattr(make, '__qualname__', make)}"
        self._store = store
        self._cached = cached(store, key=self.key, condition=_condition)(make)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """What is held, or made now."""
        return self._cached(*args, **kwargs)

    def takes(self, name: str) -> bool:
        """Whether there is an argument of this name."""
        return name in self._names

    def key(self, *args: P.args, **kwargs: P.kwargs) -> Hashable:
        """Under which it is held."""
        given = {**dict(zip(self._names, args, strict=False)), **kwargs}
        return self._name, tuple((each, value) for each, value in sorted(given.items()) if not each.startswith("_"))

    def found(self, *args: P.args, **kwargs: P.kwargs) -> R | None:
        """What is held; nothing is made."""
        with _condition:
            return self._store.get(self.key(*args, **kwargs))

    def keep(self, made: R, *args: P.args, **kwargs: P.kwargs) -> None:
        """Holds what was made elsewhere."""
        with _condition, suppress(ValueError):  # too large
            self._store[self.key(*args, **kwargs)] = made


def held(make: Callable[P, R]) -> Held[P, R]:
    """As a decorator."""
    return Held(make)


store: LRUCache[Hashable, Any] = LRUCache(MOST_BYTES, getsizeof=size_of)
"""The one of the server."""
_condition = threading.Condition()
