"""ALTI+ (Ferrando et al. 2022, "Towards Opening the Black Box of Neural Machine Translation"): shares of source and prefix.

What attention's sublayer makes of a row is a sum: one vector T_ij of each key, in cross-attention one of the row itself too,
and biases, which belong to no token. A key's share is c_ij = max(0, ‖y_i‖₁ − ‖y_i − T_ij‖₁), of rows that add up to 1. Shares
are joined from layer to layer (`relevance.joined`). Feed-forward layers, which see one position each, are left out.
"""

import torch

from transformer_viz.attribution.contributions import Sublayer, sublayers
from transformer_viz.attribution.method import Found, Method
from transformer_viz.attribution.relevance import Shares, joined
from transformer_viz.attribution.run import Run
from transformer_viz.terms import Kind
from transformer_viz.trace.attribution import TITLES


def of(run: Run, kind: Kind, mode: str) -> Found:
    """(query, key); rows of both kinds together add up to 1, so that the sum over source tokens is the source's share."""
    found = sublayers(run, METHOD.title, streams=("residual_before", "added", "residual_after"))
    n_source, n_steps = run.read.source.shape[1], run.read.target.shape[1]
    return Found(joined(((each.site, _shares(each)) for each in found), n_source, n_steps)[kind])


def _shares(each: Sublayer) -> Shares:
    rows = []
    for part, of_keys, of_residual in each.terms():
        after = each.stream["residual_after"][part][:, None].double()
        every = torch.cat([of_keys, of_residual[:, None]], 1).double()
        rows.append((after.abs().sum(-1) - (after - every).abs().sum(-1)).clamp_min(0))
    found = torch.cat(rows)
    sums = found.sum(-1, keepdim=True)
    found = torch.where(sums > 0, found / sums, 0.0)
    return Shares(found[:, :-1], found[:, -1])


METHOD = Method(
    of,
    title=TITLES["alti"],
    help="The share of each source token, and of each token written before, in what a row is made of",
    cannot="what of it was used to write; feed-forward layers are left out",
    follows_layers=True,
    order=6,
)
