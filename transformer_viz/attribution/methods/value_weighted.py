"""Value-weighted norm (Kobayashi et al. 2020): ‖α_tj (x_j W_V + b_V) W_O‖ of each head, how much it really takes from a key."""

import torch

from transformer_viz.attribution.contributions import sublayers
from transformer_viz.attribution.method import Found, Method
from transformer_viz.attribution.run import Run
from transformer_viz.terms import Kind
from transformer_viz.trace.attribution import TITLES


def of(run: Run, kind: Kind, mode: str) -> Found:
    """(layer, head, query, key)."""
    found = sublayers(run, METHOD.title, kind)
    values = [each.weights * torch.linalg.vector_norm(each.projected, dim=-1)[:, None] for each in found]
    return Found(torch.stack(values), tuple(each.site.layer for each in found))


METHOD = Method(
    of,
    title=TITLES["value_weighted"],
    help="The size of what a head takes from a key: its weight times the length of the value, as it is added to the stream",
    cannot="whether anything above uses what is taken",
    order=2,
)
