"""The results that the server keeps for all sessions, bounded by their bytes together.

Streamlit's own caches are bounded by the number of their entries, and one entry here may be a thousand times as large as
another. A result is found again by the function and its arguments, compared by value: a model by its files and its options,
a Trace by what was read and written.
"""

import threading
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

from cachetools import LRUCache, cached

from transformer_viz.loaded_model import LoadedModel
from transformer_viz.trace.trace import Trace
from transformer_viz.views.cache.model_list import identity
from transformer_viz.views.components.recorded_calls import Call

MOST_BYTES = 512_000_000
_OVERHEAD = 1_000
"""Bytes of an entry beside its arrays, texts and files, roughly."""


def size_of(value: Any) -> int:
    """Bytes of a result: a Trace, an array, a file, or what is made of them."""
    size, parts = 0, [value]
    while parts:
        part = parts.pop()
        if isinstance(part, bytes | str):
            size += len(part)
        elif isinstance(part, Trace):
            # Here, because a file is looked at where there is no torch.
            from transformer_viz.tracing.trace_size import bytes_of

            size += bytes_of(part)
        elif isinstance(n_bytes := getattr(part, "nbytes", None), int):
            size += n_bytes
        elif isinstance(part, Mapping):
            parts += part.values()
        elif isinstance(part, list | tuple):
            size += _OVERHEAD
            parts += part
        elif is_dataclass(part):
            parts += [getattr(part, field.name) for field in fields(part)]
    return size


def key_of(value: Any) -> Hashable:
    """The key that tells a call or an argument from another one, by value."""
    if isinstance(value, Call):
        function: Any = value.function
        name = getattr(function, "__qualname__", type(function).__qualname__)
        return function.__module__, name, key_of(value.args), key_of(value.kwargs)
    if isinstance(value, Trace):
        run = (value.source, value.source_tokens, value.target_tokens, value.target_ids, value.output_tokens)
        layers = tuple((kind, attention.layers) for kind, attention in value.attentions.items())
        kept = (layers, value.precision, tuple(value.attributions))
        made_by = (value.made_by.get("checkpoint"), value.made_by.get("snapshot"))
        return (*run, value.edits, value.mistake, *kept, *made_by)
    if isinstance(value, LoadedModel):
        return identity(value)
    if isinstance(value, Mapping):
        return tuple((name, key_of(value[name])) for name in sorted(value))
    if isinstance(value, list | tuple):
        return tuple(map(key_of, value))
    return value


class Store:
    """Results by key, of which those that were not wanted for the longest time go first."""

    def __init__(self, most_bytes: int) -> None:
        self.results: LRUCache[Hashable, Any] = LRUCache(most_bytes, getsizeof=size_of)
        self._condition = threading.Condition()
        self._made = cached(self.results, key=lambda key, make: key, condition=self._condition)(lambda key, make: make())

    def get(self, key: Hashable) -> Any:
        """Returns what is kept, or None."""
        with self._condition:
            return self.results.get(key)

    def get_or_make(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Returns what is kept, or makes it now. Sessions that want the same at the same moment wait for one making. What alone
        is too large is not kept, and no error is."""
        return self._made(key, make)

    def put(self, key: Hashable, result: Any) -> None:
        """Keeps what was made elsewhere."""
        with self._condition, suppress(ValueError):  # too large
            self.results[key] = result


store = Store(MOST_BYTES)
"""The server's."""
