"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2) with the tap.

Pure functions; the parameters live in `blocks.py`. Axes are always
(batch, head, query, key) and (batch, head, query or key, d_head).
"""

import math

import torch.nn.functional as F
from torch import Tensor

from transformer_viz.model import masks
from transformer_viz.model.tap import Site, Tap, looking


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
    look = looking(tap, *site)
    query, key, value = look("query", query), look("key", key), look("value", value)
    n_queries, n_keys = query.shape[-2], key.shape[-2]
    # One row has the same operations with and without a tap, so that what is recorded of a step is what decoding computes.
    is_fused = tap is None and n_queries > 1
    if is_fused and causal and masked is None and n_queries == n_keys:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
    if causal and n_queries > 1:
        future = masks.future(n_queries, n_keys, n_keys - n_queries, query.device)[None, None]
        masked = future if masked is None else masked | future
    if is_fused:
        return _fused(query, key, value, masked, dropout)
    scores = (query @ key.transpose(-2, -1)).div_(math.sqrt(query.shape[-1]))
    weights = _weights(scores, masked, site, tap)
    heads = (F.dropout(weights, dropout) if dropout else weights) @ value
    return heads if tap is None else tap(site, "heads", heads)


def _fused(query: Tensor, key: Tensor, value: Tensor, masked: Tensor | None, dropout: float) -> Tensor:
    allowed = None if masked is None else ~masked
    output = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed, dropout_p=dropout)
    if masked is not None and output.device.type != "cpu":
        # The CPU kernel gives zeros for an empty row; others are not bound to.
        output = output.masked_fill(masked.all(-1, keepdim=True), 0.0)
    return output


def _weights(scores: Tensor, masked: Tensor | None, site: Site, tap: Tap | None) -> Tensor:
    """(batch, head, query, key) -> the same."""
    if tap is None:
        return scores.softmax(-1) if masked is None else masked_softmax(scores, masked)
    scores = tap(site, "scores", scores)
    given = masks.nothing(scores.shape[2], scores.shape[3], scores.device) if masked is None else _rows(masked, scores)
    seen = tap(site, "mask", given)
    # A step of cached decoding masks nothing; to fill that in, twice, would be a third of its attention's time.
    is_open = masked is None and seen is given
    return tap(site, "weights", scores.softmax(-1) if is_open else masked_softmax(scores, seen))


def _rows(masked: Tensor, scores: Tensor) -> Tensor:
    """The mask with a row for each query, so that a tap can change one; a padding mask is one row for all of them."""
    return masked.expand(*masked.shape[:2], *scores.shape[2:])


def masked_softmax(scores: Tensor, masked: Tensor) -> Tensor:
    """Softmax over keys; masked cells are exactly 0, and a fully masked row is all zeros in every precision."""
    weights = scores.masked_fill(masked, float("-inf")).softmax(-1)
    # A fully masked row is NaN here; all of its cells are masked, so this line makes it zeros.
    return weights.masked_fill(masked, 0.0)
