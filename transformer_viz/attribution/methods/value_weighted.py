"""Value-weighted norm (Kobayashi et al. 2020): ‖α_tj (x_j W_V + b_V) W_O‖ of each head, how much it really takes from a key."""

import torch
from torch import Tensor

from transformer_viz.attribution.contributions import sublayers
from transformer_viz.attribution.methods import Method
from transformer_viz.attribution.rerun import Run
from transformer_viz.language import later
from transformer_viz.terms import Kind
from transformer_viz.trace.attribution import TITLES


def of(run: Run, kind: Kind, mode: str) -> Tensor:
    """(layer, head, query, key)."""
    layers = sublayers(run, METHOD.title, kind)
    values = [layer.weights * torch.linalg.vector_norm(layer.projected, dim=-1)[:, None] for layer in layers]
    return torch.stack(values)


METHOD = Method(
    of,
    title=TITLES["value_weighted"],
    help=later(
        "The size of what a head takes from a key: its weight times the length of the value, as it is added to the stream"
    ),
    cannot=later("whether anything above uses what is taken"),
    order=2,
)
