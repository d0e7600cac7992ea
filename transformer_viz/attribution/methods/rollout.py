"""Attention rollout (Abnar & Zuidema 2020): half of each position is its own, the other half comes by the mean of the heads.

From layer to layer E ← (½A + ½I) E in the encoder. Of a decoder row R = [source | prefix] begins as [0 | I]; self-attention
makes R ← (½A + ½I) R of it, cross-attention R ← ½A [E | 0] + ½R, as ALTI+ (Ferrando et al. 2022) joins the two.
"""

from transformer_viz.attribution.method import Found, Method
from transformer_viz.attribution.relevance import Shares, joined
from transformer_viz.attribution.run import Run
from transformer_viz.model.tap import Keep
from transformer_viz.terms import Kind
from transformer_viz.trace.attribution import TITLES


def of(run: Run, kind: Kind, mode: str) -> Found:
    """(query, key); the rows of both kinds together add up to 1, unless a row may look at nothing."""
    tap = Keep("weights")
    run.logits(run.read, tap)
    shares = [(site, Shares.half(kept["weights"][0].mean(0), site.kind)) for site, kept in tap.kept.items()]
    return Found(joined(shares, run.read.source.shape[1], run.read.target.shape[1])[kind])


METHOD = Method(
    of,
    title=TITLES["rollout"],
    help="Mean weights followed through all layers, where half of each position stays what it was",
    cannot="what values, feed-forward layers and the written token do to it",
    follows_layers=True,
    order=5,
)
