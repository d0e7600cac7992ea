"""Models that are not ours, as the server holds them for all sessions: bounded by their bytes together."""

import threading
from collections.abc import Callable, Hashable

from cachetools import LRUCache

from transformer_viz.errors import ModelError
from transformer_viz.loaded_model import LoadedModel

MOST_BYTES = 8_000_000_000
_SINGLE = 4
"""Bytes of a number in single precision."""

models: LRUCache[Hashable, LoadedModel] = LRUCache(MOST_BYTES, getsizeof=lambda model: _SINGLE * model.n_parameters)
_access = threading.Lock()


def found(name: Hashable) -> LoadedModel | None:
    """A model that is there already; nobody waits for one that is being loaded."""
    with _access:
        return models.get(name)


def held(name: Hashable, needed: int, make: Callable[[], LoadedModel]) -> LoadedModel:
    """A loaded model, held under its name; where there is no room for another one, those not asked for the longest are let go.

    Args:
        name: tells it, and its files, from others.
        needed: the bytes that it will take.
        make: loads it. Whoever calls this loads one at a time.

    Raises:
        ModelError: it alone is more than the page holds.
    """
    if (there := found(name)) is not None:
        return there
    if needed > models.maxsize:
        raise ModelError(
            f"This model takes {needed / 1e9:.1f} GB of memory; the page holds {models.maxsize / 1e9:.1f} GB of models. "
            "Take a smaller one, or run it in Python with tv.load_model."
        )
    with _access:
        while models.currsize + needed > models.maxsize:
            models.popitem()
    model = make()
    with _access:
        models[name] = model
    return model
