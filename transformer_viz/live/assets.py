"""The engine's modules as one script."""

from pathlib import Path

from transformer_viz.viewer.modules import one_script

ENGINE = Path(__file__).parent / "engine"
"""`decode.js` is the model itself; `worker.js` is the thread in which it runs."""


def engine_script(name: str) -> str:
    """A module of the engine with all that it imports."""
    return one_script(ENGINE / name)
