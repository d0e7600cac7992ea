"""Directed rounding: how many digits of an answer survive when every sum and product is rounded the other way."""

import ctypes
import platform
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

Direction = Literal["nearest", "up", "down"]

_DIRECTIONS: list[Direction] = ["nearest", "down", "up"]
_UNITS = {"x86_64": 0x400, "aarch64": 0x400000, "arm64": 0x400000}
"""By processor: `FE_DOWNWARD` of C's <fenv.h>. `FE_TONEAREST` is 0 and `FE_UPWARD` twice as much, on Linux and macOS."""
_UNIT = _UNITS.get(platform.machine())
_C_LIBRARY = ctypes.CDLL(None) if _UNIT and platform.system() in ("Linux", "Darwin") else None


@contextmanager
def rounded(direction: Direction) -> Generator[None]:
    """This thread's processor rounds in this direction within this context, whoever computes: numpy, torch, a runtime.

    Other threads go on as they were, but a thread that is started within would round this way for good: run before, with the
    same shapes, whatever is run within, so that its pool of threads is there already. Where the C library or the processor is
    another, and on a GPU, nothing changes.
    """
    if _UNIT is None or not hasattr(_C_LIBRARY, "fesetround"):
        yield
        return
    before = _C_LIBRARY.fegetround()
    _C_LIBRARY.fesetround(_UNIT * _DIRECTIONS.index(direction))
    try:
        yield
    finally:
        _C_LIBRARY.fesetround(before)
