"""A few rows times a large matrix, shared out among the threads.

MKL multiplies a matrix with one to three rows in one thread, though all that takes time there is reading the matrix, and
one core reads half of what the memory gives to two. As a batch of parts of it, nothing copied, each thread reads its own.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

_LARGE = 2**18
"""Numbers in a matrix from which on it pays: smaller ones stay in the caches."""
_FEW = 16
"""Rows up to which it is clearly faster."""


def projection(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """`F.linear` with these parameters: from rows (batch, in) to rows (batch, out).

    Args:
        weight: (out, in).
        bias: (out,), or None.
    """

    def plain(rows: Tensor) -> Tensor:
        return F.linear(rows, weight, bias)

    n_parts = _n_parts(weight)
    if n_parts == 1:
        return plain
    parts = weight.view(n_parts, -1, weight.shape[1]).transpose(1, 2)
    biases = None if bias is None else bias.view(n_parts, 1, -1)

    def shared(rows: Tensor) -> Tensor:
        if len(rows) > _FEW:
            return plain(rows)
        each = rows.expand(n_parts, *rows.shape)
        found = torch.bmm(each, parts) if biases is None else torch.baddbmm(biases, each, parts)
        return found.transpose(0, 1).reshape(len(rows), -1)

    return shared


def _n_parts(weight: Tensor) -> int:
    """As many as there are threads, or the most below that are of the same size; 1 where others would not be faster."""
    is_slow = (
        weight.device.type == "cpu" and torch.backends.mkl.is_available() and weight.dtype in (torch.float32, torch.float64)
    )
    if not is_slow or weight.numel() < _LARGE or not weight.is_contiguous():
        return 1
    return next(n for n in range(torch.get_num_threads(), 0, -1) if weight.shape[0] % n == 0)
