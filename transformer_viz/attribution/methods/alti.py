"""ALTI+ (Ferrando et al. 2022, "Towards Opening the Black Box of Neural Machine Translation"): shares of source and prefix.

What attention's sublayer makes of a row is a sum: one vector T_ij of each key, in cross-attention one of the row itself too,
and biases, which belong to no token. A key's share is c_ij = max(0, ‖y_i‖₁ − ‖y_i − T_ij‖₁), of rows that add up to 1. Shares
are joined from layer to layer (`relevance.join_layers`). Feed-forward layers, which see one position each, are left out.
"""

import torch
from torch import Tensor

from transformer_viz.attribution.contributions import join_layers, sublayers
from transformer_viz.attribution.methods import Method
from transformer_viz.attribution.rerun import Run
from transformer_viz.language import later
from transformer_viz.terms import Kind
from transformer_viz.trace.attribution import TITLES


def of(run: Run, kind: Kind, mode: str) -> Tensor:
    """(query, key); rows of both kinds together add up to 1, so that the sum over source tokens is the source's share."""
    shares = []
    for sublayer in sublayers(run, METHOD.title, streams=("residual_before", "added", "residual_after")):
        rows = []
        for part, of_keys, of_residual in sublayer.terms():
            after = sublayer.stream["residual_after"][part][:, None].double()
            terms = torch.cat([of_keys, of_residual[:, None]], 1).double()
            rows.append((after.abs().sum(-1) - (after - terms).abs().sum(-1)).clamp_min(0))
        proximity = torch.cat(rows)
        sums = proximity.sum(-1, keepdim=True)
        share = torch.where(sums > 0, proximity / sums, 0.0)
        shares.append((sublayer.site, share[:, :-1], share[:, -1]))
    return join_layers(shares, run.n_keys("cross"), run.n_keys("decoder"))[kind]


METHOD = Method(
    of,
    title=TITLES["alti"],
    help=later("The share of each source token, and of each token written before, in what a row is made of"),
    cannot=later("what of it was used to write; feed-forward layers are left out"),
    follows_layers=True,
    order=6,
)
