"""Dropout (Srivastava et al. 2014, as Vaswani et al. 2017, section 5.4) that a CPU can afford.

torch draws one number for each value it may drop, one after the other on all but Intel's processors; that was an eighth of
a training step. Sixteen random bits are enough to say whether a value stays, and one draw has 64.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_BITS = 16
_DRAW = 64 // _BITS
"""Values that one draw decides upon."""


class Dropout(nn.Module):
    """`dropout` in train mode, nothing in eval mode."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same."""
        return dropout(x, self.probability) if self.training else x

    def extra_repr(self) -> str:
        """What `print(model)` says."""
        return f"probability={self.probability}"


def dropout(x: Tensor, probability: float) -> Tensor:
    """Each value becomes 0 with `probability`; the others are scaled so that the mean stays what it was.

    On a CPU the probability is rounded to a multiple of 2⁻¹⁶, below 1, and the scale is that of the rounded one.

    Args:
        x: floats of any shape.
        probability: from 0, which changes nothing, to below 1.

    Returns:
        The shape and dtype of `x`.
    """
    if not probability:
        return x
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        # One kernel on a device, and of a compiler, which draws as it multiplies.
        return F.dropout(x, probability)
    n_dropped = min(round(probability * 2**_BITS), 2**_BITS - 1)
    kept = _draws(x.numel()) >= n_dropped - 2 ** (_BITS - 1)
    return x * kept.view(x.shape).to(x.dtype).mul_(2**_BITS / (2**_BITS - n_dropped))


def _draws(n: int) -> Tensor:
    """n numbers, int16, each of the 2¹⁶ as likely as any other, out of torch's own generator."""
    words = torch.empty(-(-n // _DRAW), dtype=torch.int64).random_(-(2**63), None)
    return words.view(torch.int16)[:n]
