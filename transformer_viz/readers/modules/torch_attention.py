"""torch's own `scaled_dot_product_attention`, computed step by step as its kernel that gives weights does."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_viz.readers.modules.operator_roles import aten


class AttentionSteps(NamedTuple):
    """The tensors that torch computes on the way to the product of weights and values.

    Attributes:
        query: multiplied with a part of the scale.
        key: transposed, and multiplied with the rest of it.
        product: of both.
        hidden: what a mask of truths hides, or None.
        added: the mask as it is added, float, or None.
        scores: the sum.
        weights: their softmax; 0 in a row that a mask hides whole.
        applied: the weights after dropout.
        value: in the precision of the weights.
    """

    query: Tensor
    key: Tensor
    product: Tensor
    hidden: Tensor | None
    added: Tensor | None
    scores: Tensor
    weights: Tensor
    applied: Tensor
    value: Tensor


def attention_steps(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> AttentionSteps | None:
    """The steps; None where shapes have to be made alike first, or torch refuses the arguments or has another kernel.

    The order of the steps, and where they are in single precision, is that of torch's `_scaled_dot_product_attention_math`, so
    that the last bit is the same. Heads that share keys (`enable_gqa`) are among the shapes that are not alike.
    """
    if query.is_nested or key.is_nested or value.is_nested or query.device.type not in ("cpu", "cuda"):
        return None
    if query.dim() < 2 or not query.shape[-1] or not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        return None
    if not query.dtype == key.dtype == value.dtype:
        return None
    if attn_mask is not None:
        is_right = not is_causal and attn_mask.dtype in (torch.bool, query.dtype)
        if not is_right or not _fits(attn_mask, (*query.shape[:-1], key.shape[-2])):
            return None
    hidden, added = None, attn_mask
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        hidden = attn_mask.logical_not()
        added = torch.zeros(hidden.shape, dtype=query.dtype, device=hidden.device).masked_fill_(hidden, -math.inf)
    if query.dtype in (torch.half, torch.bfloat16) and not torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed():
        query, key, value = query.float(), key.float(), value.float()
    if is_causal:
        added = torch.full((query.shape[-2], key.shape[-2]), -math.inf, dtype=query.dtype, device=query.device).triu(1)
        hidden = added < 0
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    root = math.sqrt(abs(scale))
    query, key = query * math.copysign(root, scale), key.transpose(-2, -1) * root
    product = torch.matmul(query, key)
    scores = product if added is None else product + added
    # The kernel that looks for rows without any key takes as long as all the rest. Only the caller's own mask makes such rows.
    weights = torch.softmax(scores, -1) if attn_mask is None else aten._safe_softmax(scores, -1)
    applied = weights if dropout_p == 0 else torch.dropout(weights, dropout_p, True)
    return AttentionSteps(query, key, product, hidden, added, scores, weights, applied, value)


def _fits(mask: Tensor, shape: tuple[int, ...]) -> bool:
    """Tells whether a mask is as large as the scores or is expanded to them."""
    sizes = mask.shape
    return len(sizes) <= len(shape) and all(n in (1, own) for n, own in zip(reversed(sizes), reversed(shape), strict=False))
