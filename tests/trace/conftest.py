"""Trace files in pieces: opening them, changing them, and what must be true of everything that loads."""

import dataclasses
import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from transformer_viz import decode
from transformer_viz.errors import TraceError
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
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if dataclasses.is_dataclass(a):
        return all(is_same(getattr(a, field.name), getattr(b, field.name)) for field in dataclasses.fields(a))
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(is_same(a[key], b[key]) for key in a)
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
