"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2) with the tap.

Pure functions; the parameters live in `blocks.py`. Axes are always
(batch, head, query, key) and (batch, head, query or key, d_head).
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_viz.model import masks
from transformer_viz.model.tap import Site, Tap


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    masked: Tensor | None,
    *,
    causal: bool,
    site: Site,
    tap: Tap | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Each head's weighted sum of values.

    Args:
        query: (batch, head, query, d_k).
        key: (batch, head, key, d_k).
        value: (batch, head, key, d_v).
        masked: bool, broadcastable to (batch, head, query, key), True = masked; None = nothing.
        causal: also mask every key that comes after the query; the last query is the last key.
        site: which attention this is, for the tap.
        tap: sees and may change every intermediate. None takes torch's fused kernel, where there is more than one query.
        dropout: probability with which a weight is dropped, after the tap has seen the weights.

    Returns:
        (batch, head, query, d_v). A query that may look at nothing gets zeros.
    """
    if tap is not None:
        query = tap(site, "query", query) if "query" in tap.names else query
        key = tap(site, "key", key) if "key" in tap.names else key
        value = tap(site, "value", value) if "value" in tap.names else value
    n_queries, n_keys = query.shape[-2], key.shape[-2]
    # One row has the same operations with and without a tap, so that what is recorded of a step is what decoding computes.
    is_fused = tap is None and n_queries > 1
    if is_fused and causal and masked is None and n_queries == n_keys:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
    if causal and n_queries > 1:
        future = masks.future(n_queries, n_keys, n_keys - n_queries, query.device)[None, None]
        masked = future if masked is None else masked | future
    if is_fused:
        allowed = None if masked is None else ~masked
        heads = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed, dropout_p=dropout)
        if masked is not None and heads.device.type != "cpu":
            # The CPU kernel gives zeros for an empty row; others are not bound to.
            heads = heads.masked_fill(masked.all(-1, keepdim=True), 0.0)
        return heads
    scores = (query @ key.transpose(-2, -1)).div_(math.sqrt(query.shape[-1]))
    if tap is None:
        weights = scores.softmax(-1) if masked is None else masked_softmax(scores, masked)
        return (F.dropout(weights, dropout) if dropout else weights) @ value
    if "scores" in tap.names:
        scores = tap(site, "scores", scores)
    if "mask" in tap.names:
        # A row for each query, so that a tap can change one; a padding mask is one row for all of them.
        nothing = torch.zeros(1, 1, *scores.shape[2:], dtype=torch.bool, device=scores.device)
        given = nothing if masked is None else masked.expand(*masked.shape[:2], *scores.shape[2:])
        seen = tap(site, "mask", given)
        # A step of cached decoding masks nothing; to fill that in, twice, would be a third of its attention's time.
        masked = None if seen is nothing else seen
    weights = scores.softmax(-1) if masked is None else masked_softmax(scores, masked)
    if "weights" in tap.names:
        weights = tap(site, "weights", weights)
    heads = (F.dropout(weights, dropout) if dropout else weights) @ value
    return tap(site, "heads", heads) if "heads" in tap.names else heads


def masked_softmax(scores: Tensor, masked: Tensor) -> Tensor:
    """Softmax over keys; masked cells are exactly 0, and a fully masked row is all zeros in every precision."""
    weights = scores.masked_fill(masked, float("-inf")).softmax(-1)
    # A fully masked row is NaN here; all of its cells are masked, so this line makes it zeros.
    return weights.masked_fill(masked, 0.0)
