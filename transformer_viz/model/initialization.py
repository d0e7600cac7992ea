"""Draws a model's first weights, unless it is made for its shapes alone, under `torch.device("meta")`.

There torch would run every operation without effect, and for many of them first import its compiler: 1.4 s in each new process.
"""

import torch
from torch import Tensor


def is_needed() -> bool:
    """Whether there is anything to compute."""
    return torch.get_default_device().type != "meta"


def normal(rows: int, columns: int, deviation: float = 1.0) -> Tensor:
    """(rows, columns), drawn from a normal distribution around zero."""
    if not is_needed():
        return torch.empty(rows, columns)
    return torch.randn(rows, columns) * deviation
