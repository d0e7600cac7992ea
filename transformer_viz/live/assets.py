"""The engine's files as one script."""

from functools import cache
from pathlib import Path

_ENGINE = Path(__file__).parent / "engine"
PARTS = ("attention.js", "weights.js", "edits.js", "sampling.js", "text.js", "decode.js")
"""The model itself; `worker.js` is the thread in which it runs."""


@cache
def engine_script(*more: str) -> str:
    """All parts of the engine, one after the other, and `more` files of its folder behind them."""
    return "\n".join((_ENGINE / name).read_text(encoding="utf-8") for name in (*PARTS, *more))
