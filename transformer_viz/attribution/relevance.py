"""Follows shares from layer to layer: which tokens each position is made of after every layer."""

from collections.abc import Iterable

import torch
from torch import Tensor

from transformer_viz.model.tap import Site
from transformer_viz.terms import Kind


def join_layers(shares: Iterable[tuple[Site, Tensor, Tensor]], n_source: int, n_steps: int) -> dict[Kind, Tensor]:
    """The shares of source tokens (`cross`) and of tokens that the decoder read (`decoder`) in each row after the last layer,
    (step, key).

    `shares` are in the order of the calls: the encoder's layers, then each decoder layer's self-attention and cross-attention.
    Each has the shares of keys in every position, (query, key), and what stays of the position itself, (query,). In
    self-attention the position is one of the keys, and nothing else stays.
    """
    encoder = torch.eye(n_source, dtype=torch.float64)
    rows = torch.eye(n_source + n_steps, dtype=torch.float64)[n_source:]
    for site, *share in shares:
        of_keys, of_residual = (part.to("cpu", encoder.dtype) for part in share)
        match site.kind:
            case "encoder":
                encoder = of_keys @ encoder
            case "decoder":
                rows = of_keys @ rows
            case "cross":
                rows = of_residual[:, None] * rows
                rows[:, :n_source] += of_keys @ encoder
    return {"cross": rows[:, :n_source], "decoder": rows[:, n_source:]}
