"""The runs that viewers show, as the bytes that browsers fetch: the whole at once, or a large one a head at a time.

Who has the address of one may read it, and only the session whose run it is has been given it: it is made of the run's bytes
and of a secret of the session. What was not wanted for the longest time goes first.
"""

import gzip
import hashlib
import json
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st
from cachetools import LRUCache

MOST_BYTES = 256_000_000
_SECRET = "viewer_secret"
_MIN_SIZE = 1_000
"""Bytes below which packing takes longer than it saves."""


@dataclass(frozen=True)
class SentRun:
    """A run as browsers fetch it.

    Attributes:
        packed: its JSON, compressed.
        part: gives the JSON-ready numbers of one head: kind, layer, head; raises an error of ours where there is none.
        n_bytes: of the JSON and of the run that its parts are made of.
    """

    packed: bytes
    part: Callable[..., dict[str, Any]]
    n_bytes: int


class _Sent:
    def __init__(self) -> None:
        self._runs: LRUCache[str, SentRun] = LRUCache(MOST_BYTES, getsizeof=lambda run: run.n_bytes)
        self._lock = threading.Lock()

    def get(self, name: str) -> SentRun | None:
        with self._lock:
            return self._runs.get(name)

    def put(self, name: str, run: SentRun) -> None:
        with self._lock:
            self._runs[name] = run


_sent = _Sent()


def packed(value: Any) -> bytes:
    """A value as compressed JSON, with arrays as bytes."""
    # Here, because the server that starts has no time for Plotly.
    from transformer_viz.figures.figure_data import typed

    text = json.dumps(value, separators=(",", ":"), default=typed, allow_nan=False).encode()
    return gzip.compress(text, 1 if len(text) > _MIN_SIZE else 0, mtime=0)


def send(data: bytes, part: Callable[..., dict[str, Any]], n_bytes: int) -> str:
    """Keeps a run for this session's browser, and returns the name by which it fetches it.

    Args:
        data: the run, packed.
        part: as of `SentRun`.
        n_bytes: of the run itself, which is held for its parts.
    """
    secret = st.session_state.setdefault(_SECRET, secrets.token_bytes(16))
    name = hashlib.blake2s(data, key=secret, digest_size=16).hexdigest()
    _sent.put(name, SentRun(data, part, min(MOST_BYTES, len(data) + n_bytes)))
    return name


def fetched(name: str) -> SentRun | None:
    """The run of this name, or None."""
    return _sent.get(name)
