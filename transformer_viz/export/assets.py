"""The page's own files: HTML, CSS and JavaScript, also for the app, which shows the same step player."""

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "page"


@cache
def asset(name: str) -> str:
    """The text of a file of `page/`."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def script(*names: str) -> str:
    """Several scripts, one after the other."""
    return "\n".join(asset(name) for name in names)
