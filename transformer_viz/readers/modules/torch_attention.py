"""torch's own `scaled_dot_product_attention`, computed step by step as its kernel that gives weights does."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_viz.readers.modules.operator_roles import aten


class AttentionSteps(NamedTuple):
    """What torch computes on the way to the product of weights and values.

    Attributes:
        query: multiplied with a part of the scale.
        key: transposed, and multiplied with the rest of it.
        product: of both.
        mask: what is added to it, float, or None.
        scores: the sum.
        weights: their softmax; 0 in a row where everything is hidden.
        applied: the weights after dropout.
        value: in the precision of the weights.
    """

    query: Tensor
    key: Tensor
    product: Tensor
    mask: Tensor | None
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
    that the last bit is the same.
    """
    batch = query.shape[:-2]
    is_usual = (
        not (query.is_nested or key.is_nested or value.is_nested)
        and query.device.type in ("cpu", "cuda")
        and query.dtype == key.dtype == value.dtype
        and query.dim() >= 2
        and key.shape[:-2] == batch == value.shape[:-2]
        and (attn_mask is None or not is_causal)
        and (attn_mask is None or attn_mask.dtype in (torch.bool, query.dtype))
        and (attn_mask is None or _fits(attn_mask, (*batch, query.shape[-2], key.shape[-2])))
    )
    if not is_usual:
        return None
    precision = query.dtype
    mask = attn_mask
    if mask is not None and mask.dtype == torch.bool:
        mask = _added(mask, precision)
    if precision in (torch.half, torch.bfloat16) and not torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed():
        query, key, value = query.float(), key.float(), value.float()
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    root = math.sqrt(abs(scale))
    if is_causal:
        seen = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
        mask = _added(seen, query.dtype)
    query, key = query * math.copysign(root, scale), key.transpose(-2, -1) * root
    product = torch.matmul(query, key)
    scores = product if mask is None else product + mask
    weights = aten._safe_softmax(scores, -1)
    applied = weights if dropout_p == 0 else torch.dropout(weights, dropout_p, True)
    return AttentionSteps(query, key, product, mask, scores, weights, applied, value)


def _fits(mask: Tensor, shape: tuple[int, ...]) -> bool:
    """Tells whether a mask is as large as the scores or is expanded to them."""
    sizes = mask.shape
    return len(sizes) <= len(shape) and all(n in (1, own) for n, own in zip(reversed(sizes), reversed(shape), strict=False))


def _added(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """The mask that is added for one that says what is seen."""
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(seen.logical_not(), -math.inf)
