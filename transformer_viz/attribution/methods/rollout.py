"""Attention rollout (Abnar & Zuidema 2020): half of each position is its own, the other half comes by the mean of the heads.

From layer to layer E ← (½A + ½I) E in the encoder. Of a decoder row R = [source | prefix] begins as [0 | I]; self-attention
makes R ← (½A + ½I) R of it, cross-attention R ← ½A [E | 0] + ½R, as ALTI+ (Ferrando et al. 2022) joins the two.
"""

import torch
from torch import Tensor

from transformer_viz.attribution.contributions import join_layers
from transformer_viz.attribution.methods import Method
from transformer_viz.attribution.rerun import Run
from transformer_viz.language import later
from transformer_viz.model.tap import RecordTap
from transformer_viz.terms import Kind
from transformer_viz.trace.attribution import TITLES


def of(run: Run, kind: Kind, mode: str) -> Tensor:
    """(query, key); the rows of both kinds together add up to 1, unless a row may look at nothing."""
    keep = RecordTap("weights")
    run.logits(run.inputs, keep)
    shares = []
    for site, kept in keep.kept.items():
        halves = kept["weights"][0].mean(0) / 2
        residual = halves.new_full(halves.shape[:1], 0.5)
        if site.kind != "cross":
            # The position is a key of its own.
            halves, residual = halves + residual.diag(), torch.zeros_like(residual)
        shares.append((site, halves, residual))
    return join_layers(shares, run.n_keys("cross"), run.n_keys("decoder"))[kind]


METHOD = Method(
    of,
    title=TITLES["rollout"],
    help=later("Mean weights followed through all layers, where half of each position stays what it was"),
    cannot=later("what values, feed-forward layers and the written token do to it"),
    follows_layers=True,
    order=5,
)
