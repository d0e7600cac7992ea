"""What an adapter has seen of a model's attention, and its arrays as a Trace wants them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_viz.errors import OptionError
from transformer_viz.terms import KINDS, Kind

HIDDEN = -1e4
"""An additive mask up to this hides a key: half precision goes to −65504, older code wrote −10⁴ or −10⁹."""


@dataclass(frozen=True)
class Seen:
    """One call of attention for one sentence.

    Attributes:
        kind: which attention.
        weights: float (head, query, key), after the softmax.
        masked: bool (query, key) or (head, query, key), True = masked.
    """

    kind: Kind
    weights: np.ndarray
    masked: np.ndarray


def masked_by(mask: Tensor) -> Tensor:
    """True = masked, from an additive mask."""
    return mask <= HIDDEN


def numpy(tensor: Tensor) -> np.ndarray:
    """On the CPU; half precision is widened, since numpy has no bfloat16."""
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor).numpy()


def by_kind(calls: Sequence[Seen]) -> tuple[dict[Kind, np.ndarray], dict[Kind, np.ndarray]]:
    """Weights (layer, head, query, key) and masks, (query, key) where all layers and heads share one; layers as called.

    Raises:
        OptionError: layers of one kind have different sizes.
    """
    weights, masks = {}, {}
    for kind in KINDS:
        layers = [call for call in calls if call.kind == kind]
        if not layers:
            continue
        shapes = {call.weights.shape for call in layers}
        if len(shapes) > 1:
            sizes = ", ".join(map(str, sorted(shapes)))
            raise OptionError(
                f"the layers of {kind} attention have different shapes (head, query, key): {sizes}; a Trace needs one for all"
            )
        weights[kind] = np.stack([call.weights for call in layers])
        whole = np.stack([np.broadcast_to(call.masked, call.weights.shape) for call in layers])
        masks[kind] = whole[0, 0] if (whole == whole[:1, :1]).all() else whole
    return weights, masks
