"""The measures of attribution by name, found by looking into this folder: each is a module that defines `METHOD`."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

import torch
from torch import Tensor

from transformer_viz.attribution.rerun import Run
from transformer_viz.terms import Kind


@dataclass(frozen=True)
class Method:
    """One measure of attribution.

    Attributes:
        of: the function that computes it, (query, key) or, for all layers of the model, (layer, head or 1, query, key): from a
            run, the kind whose keys are judged, and the way to occlude a key.
        title: its name.
        help: what it measures, in a sentence.
        cannot: what it cannot tell; the rest of a sentence.
        order: its place in lists, any number; measures with one number are sorted by name.
        unit: of its numbers.
        follows_layers: whether it follows attention from layer to layer, and so needs attention wherever positions mix.
        explains_scores: whether it can explain another number of a step than the log-probability of what was written.
        modes: the ways to occlude a key; empty for a measure that does not.
        dtype: the type of its numbers.
    """

    of: Callable[[Run, Kind, str], Tensor]
    title: str
    help: str
    cannot: str
    order: int
    unit: str = ""
    follows_layers: bool = False
    explains_scores: bool = False
    modes: tuple[str, ...] = ()
    dtype: torch.dtype = torch.float32


# Last, since each module takes the class from here.
_FOUND = {module.name: import_module(f"{__name__}.{module.name}").METHOD for module in iter_modules(__path__)}
METHODS: dict[str, Method] = dict(sorted(_FOUND.items(), key=lambda named: (named[1].order, named[0])))
"""In the order in which they are listed."""


def list_methods() -> dict[str, str]:
    """Lists the methods of `tv.attribute`.

    Returns:
        The name of each method, and what it measures, in a sentence.

    Example:
        >>> import transformer_viz as tv
        >>> print(*tv.list_methods())
        occlusion value_weighted value_weighted_sum gradient rollout alti
        >>> tv.list_methods()["occlusion"]
        'How much less probable what was written becomes without a token, in nats'
    """
    return {name: method.help for name, method in METHODS.items()}
