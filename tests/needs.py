"""What a test needs and a fresh machine may lack: without it the test is skipped, by the name of what is missing.

Python, make and what `requirements-dev.txt` lists are enough for `make test`; everything else that a test uses stands here.
"""

import ctypes
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks import served
from tests.deploy import proxy

# Debian's packages. Any other name is that of a Python package.
_DEBIAN: dict[str, Callable[[], bool]] = {
    "caddy": lambda: proxy.program("caddy") is not None,
    "chromium": lambda: served.chromium() is not None,
    # Any font: without one Chromium draws no text. Debian's chromium brings this one, by what it depends on.
    "fonts-dejavu-core": lambda: sys.platform != "linux" or _has_font(),
    # Playwright brings a Node.js that is linked with it, and a bare Debian has it not.
    "libatomic1": lambda: sys.platform != "linux" or _loads("libatomic.so.1"),
    "nginx": lambda: proxy.program("nginx") is not None,
}
# Where the tests in a browser must not be left out, a test that lacks one of these fails instead.
_REQUIRED = {"chromium", "fonts-dejavu-core", "libatomic1"} if os.environ.get("TRANSFORMER_VIZ_REQUIRE_BROWSER") else set()


def needs(*names: str) -> pytest.MarkDecorator:
    """Marks a test that is skipped where one of `names` is not installed."""
    lacking = [name for name in names if not _is_there(name)]
    return pytest.mark.skipif(bool(set(lacking) - _REQUIRED), reason=_reason(lacking))


def slow(*values: Any) -> Any:
    """One of several cases of a test, which `make test` leaves out as it does what is marked slow."""
    return pytest.param(*values, marks=pytest.mark.slow)


def skip_without(name: str) -> None:
    """The same inside a fixture."""
    if not _is_there(name):
        (pytest.fail if name in _REQUIRED else pytest.skip)(_reason([name]))


def _is_there(name: str) -> bool:
    return _DEBIAN[name]() if name in _DEBIAN else find_spec(name) is not None


def _reason(names: list[str]) -> str:
    return "; ".join(f"needs {name}: {'apt' if name in _DEBIAN else 'pip'} install {name}" for name in names)


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _has_font() -> bool:
    """Whether a font lies where fontconfig looks for them."""
    homes = (
        Path.home() / ".fonts",
        Path.home() / ".local/share/fonts",
        Path("/usr/local/share/fonts"),
        Path("/usr/share/fonts"),
    )
    return any(path.suffix.lower() in (".ttf", ".otf", ".ttc", ".pfb") for home in homes for path in home.rglob("*"))
