"""Trace files in pieces: opening them, changing them, and what must be true of everything that loads."""

import dataclasses
import io
import zipfile
from typing import Any

import numpy as np
import pytest

from transformer_viz import decode
from transformer_viz.errors import TraceError
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.groups import Group
from transformer_viz.trace.inside import Inside
from transformer_viz.trace.search import Search
from transformer_viz.trace.store import load_trace, to_bytes
from transformer_viz.trace.trace import Trace


def load_bytes(data: bytes) -> Trace:
    return load_trace(io.BytesIO(data))


def members_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zip_of(parts: dict[str, bytes] | list[tuple[str, bytes]], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in parts.items() if isinstance(parts, dict) else parts:
            archive.writestr(name, content)
    return buffer.getvalue()


def is_same(a: Any, b: Any) -> bool:
    """Equal to the last bit, arrays within and searches included."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, Trace | Attention | Search | Group | Attribution | Inside):
        return type(a) is type(b) and all(is_same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, tuple) and a and isinstance(a[0], Inside):
        return len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, dict):
        return set(a) == set(b) and all(is_same(a[key], b[key]) for key in a)
    return a == b


def is_refused(data: bytes) -> bool:
    """Whether the file was refused; what is not refused must be whole enough to look at and to save again."""
    try:
        trace = load_bytes(data)
    except TraceError:
        return True
    assert isinstance(trace, Trace)
    trace.to_frame()
    if trace.search is not None:
        for i in range(len(trace.search.best)):
            assert isinstance(trace.hypothesis(i), Trace)
    assert is_same(load_bytes(to_bytes(trace)), trace)
    return False


@pytest.fixture(scope="session")
def saved(hello) -> bytes:
    return to_bytes(hello)


@pytest.fixture(scope="session")
def saved_search(tiny) -> bytes:
    return to_bytes(decode(tiny, "hello", strategy="beam", beam_size=2, max_length=4))
