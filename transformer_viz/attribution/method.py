"""What a measure of attribution is. `methods/` has one file each."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_viz.attribution.rerun import Run
from transformer_viz.terms import Kind


@dataclass(frozen=True)
class Values:
    """What a measure computed.

    Attributes:
        values: (layer, head or 1, query, key) or (query, key).
        layers: numbers of the layers, where the values have them.
    """

    values: Tensor
    layers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Method:
    """One measure.

    Attributes:
        of: computes it, from a run, whose keys are judged, and how a key is occluded.
        title: what it is called.
        help: what it says, in a sentence.
        cannot: what it cannot say, to go on after these words.
        order: its place among the others, any number; of equal ones the name decides.
        unit: of its numbers.
        follows_layers: whether it follows attention from layer to layer, and so needs attention wherever positions mix.
        modes: how a key may be occluded; none for a measure that occludes none.
        dtype: in which its numbers are kept.
    """

    of: Callable[[Run, Kind, str], Values]
    title: str
    help: str
    cannot: str
    order: int
    unit: str = ""
    follows_layers: bool = False
    modes: tuple[str, ...] = ()
    dtype: torch.dtype = torch.float32
