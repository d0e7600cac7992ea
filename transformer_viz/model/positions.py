"""Position encodings: sinusoid (Vaswani et al. 2017, section 3.5), learned, or none."""

import torch
from torch import Tensor, nn

from transformer_viz.model import initialization
from transformer_viz.model.config import ModelConfig

_ROWS = 512


def sinusoid(n_positions: int, d_model: int, base: float, dtype: torch.dtype = torch.float64) -> Tensor:
    """(position, d_model): sin on even, cos on odd channels, wavelengths 2π … 2π·base.

    Computed in float64 and rounded once, so that a wide model has exact tables; some rows at a time, so that they take little
    more memory than the table.
    """
    frequency = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    table = torch.empty(n_positions, d_model, dtype=dtype)
    for start in range(0, n_positions, _ROWS):
        angles = torch.arange(start, min(start + _ROWS, n_positions), dtype=torch.float64)[:, None] * frequency
        table[start : start + _ROWS, 0::2] = angles.sin()
        table[start : start + _ROWS, 1::2] = angles.cos()
    return table


class Positions(nn.Module):
    """Adds each token's position to its embedding."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table: Tensor | None
        if config.position == "learned":
            self.table = nn.Parameter(initialization.normal(config.max_positions, config.d_model, 0.02))
        elif config.position == "sinusoid":
            size = config.max_positions, config.d_model
            is_needed = initialization.is_needed()
            table = sinusoid(*size, config.sinusoid_base, torch.get_default_dtype()) if is_needed else torch.empty(size)
            self.register_buffer("table", table, persistent=False)
        else:
            self.table = None

    def forward(self, embedded: Tensor, first: int = 0) -> Tensor:
        """(batch, length, d_model) -> the same; the first token stands at position `first`."""
        return embedded if self.table is None else embedded + self.table[first : first + embedded.shape[1]]
