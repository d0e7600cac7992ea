"""What an adapter has seen of a model's attention, and its arrays as a Trace wants them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_viz.errors import OptionError
from transformer_viz.terms import KINDS, Kind
from transformer_viz.tracing.adapters.running import Place, numbers


@dataclass(frozen=True)
class Given:
    """What a model is run on."""

    has_source: bool
    has_target: bool


@dataclass(frozen=True)
class Seen:
    """One call of attention for one sentence.

    Attributes:
        kind: which attention.
        weights: float (head, query, key), after the softmax.
        masked: bool (query, key) or (head, query, key), True = masked.
        module: the name of the module that attends.
        place: where it stands among the layers.
        is_applied: whether what it made of the values is what these weights make of them.
    """

    kind: Kind
    weights: np.ndarray
    masked: np.ndarray
    module: str = ""
    place: Place = ()
    is_applied: bool = True


def numpy(tensor: Tensor) -> np.ndarray:
    """On the CPU; half precision is widened, since numpy has no bfloat16."""
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor).numpy()


@dataclass(frozen=True)
class Layers:
    """All layers of one kind.

    Attributes:
        weights: float (layer, head, query, key), in the order of their numbers.
        masked: bool (query, key) where all layers and heads share one, else in the shape of `weights`; True = masked.
        numbers: of the layers, where others without such attention stand between them; else None.
    """

    weights: np.ndarray
    masked: np.ndarray
    numbers: tuple[int, ...] | None


def by_kind(calls: Sequence[Seen]) -> dict[Kind, Layers]:
    """The layers of each kind that was seen.

    Raises:
        OptionError: layers of one kind have different sizes.
    """
    found = {kind: [call for call in calls if call.kind == kind] for kind in KINDS}
    return {kind: _layers(kind, layers) for kind, layers in found.items() if layers}


def _layers(kind: Kind, calls: list[Seen]) -> Layers:
    shapes = {call.weights.shape for call in calls}
    if len(shapes) > 1:
        sizes = ", ".join(map(str, sorted(shapes)))
        raise OptionError(
            f"the layers of {kind} attention have different shapes (head, query, key): {sizes}; a Trace needs one for all"
        )
    # Layers that no list numbers are numbered as they were called.
    found = numbers([call.place for call in calls]) or range(len(calls))
    ordered = [call for _, call in sorted(zip(found, calls, strict=True), key=lambda pair: pair[0])]
    whole = np.stack([np.broadcast_to(call.masked, call.weights.shape) for call in ordered])
    return Layers(
        weights=np.stack([call.weights for call in ordered]),
        masked=whole[0, 0] if (whole == whole[:1, :1]).all() else whole,
        numbers=None if set(found) == set(range(len(calls))) else tuple(sorted(found)),
    )
