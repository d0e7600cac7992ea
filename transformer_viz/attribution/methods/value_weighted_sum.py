"""Value-weighted norm of a layer (Kobayashi et al. 2020): the length of what all its heads together take from a key.

Heads that take opposite things from a key cancel each other here, and do not in the sum of their lengths.
"""

import torch
from torch import Tensor

from transformer_viz.attribution.contributions import sublayers
from transformer_viz.attribution.methods import Method
from transformer_viz.attribution.rerun import Run
from transformer_viz.language import later
from transformer_viz.terms import Kind
from transformer_viz.trace.attribution import TITLES


def of(run: Run, kind: Kind, mode: str) -> Tensor:
    """(layer, 1, query, key)."""
    layers = sublayers(run, METHOD.title, kind)
    values = [torch.cat([torch.linalg.vector_norm(part, dim=-1) for _, part in layer.parts()]) for layer in layers]
    return torch.stack(values)[:, None]


METHOD = Method(
    of,
    title=TITLES["value_weighted_sum"],
    help=later("The size of what all heads of a layer together take from a key"),
    cannot=later("which head takes it, and whether anything above uses it"),
    order=3,
)
