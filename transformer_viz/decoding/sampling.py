"""Sampling with temperature, top-k (Fan et al. 2018, section 5.4) and top-p (Holtzman et al. 2020, section 3.1)."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sampling:
    """The options of sampling.

    Attributes:
        temperature: logits are divided by it; 0 is greedy.
        top_k: only the k most probable tokens may be drawn; None is all.
        top_p: only the smallest set of most probable tokens that together have at least this probability, after
            temperature and top_k; 1 is all.
        seed: every sentence of a batch is drawn with it alone, so that a batch is what its sentences are one by one.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int = 0


def distribution(logits: Tensor, how: Sampling) -> Tensor:
    """The distribution that is drawn from: (…, vocabulary), adds up to 1. Of equal logits at an edge the lower ids stay."""
    order = logits.sort(dim=-1, descending=True, stable=True)
    if how.temperature == 0:
        first = torch.zeros_like(logits)
        return first.scatter(-1, order.indices[..., :1], 1.0)
    # The largest is taken away before the division, so that a tiny temperature overflows nothing.
    scaled = (order.values - order.values[..., :1]) / how.temperature
    if how.top_k is not None:
        scaled[..., how.top_k :] = float("-inf")
    probabilities = scaled.softmax(-1)
    # A token stays while those before it have not reached top_p; the first always stays.
    before = probabilities.cumsum(-1) - probabilities
    probabilities = torch.where((before < how.top_p) | (before == 0), probabilities, 0.0)
    probabilities = probabilities / probabilities.sum(-1, keepdim=True)
    return torch.zeros_like(probabilities).scatter(-1, order.indices, probabilities)


def drawn(probabilities: Tensor, uniform_draws: Tensor) -> Tensor:
    """The token at which the running sum of chances (batch, vocabulary) passes each mark in [0, 1)."""
    sums = probabilities.cumsum(-1)
    # Rounding may leave the whole a little under 1; a token without a chance is never taken.
    chosen = (sums <= (uniform_draws * sums[..., -1])[..., None]).sum(-1)
    last = probabilities.shape[-1] - 1 - (probabilities > 0).flip(-1).int().argmax(-1)
    return torch.minimum(chosen, last)
