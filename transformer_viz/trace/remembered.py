"""What the recurrence of a decoder remembers of each token that it has read."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False, kw_only=True)
class Remembered:
    """How much of what each step has put into a memory is still there.

    Of a recurrence c_t = f_t ⊙ c_{t−1} + (1 − f_t) ⊙ x_t W, c_t is the sum over the steps s up to t of
    (Π_{s<u≤t} f_u) ⊙ (1 − f_s) ⊙ x_s W. These are no weights of attention: nothing is compared with anything, each unit forgets
    by itself, and a row adds up to less than 1.

    Attributes:
        shares: float32 (layer, step, step), the mean over all units of (Π_{s<u≤t} f_u)(1 − f_s); 0 where s comes after t.
        layers: their numbers, from 0.
        tokens: what was read at each step.
        n_units: of one layer's memory.
        apart: the most by which that sum differs from the memory c_t that the model computed, over all layers, steps and units.
    """

    shares: np.ndarray
    layers: tuple[int, ...]
    tokens: tuple[str, ...]
    n_units: int
    apart: float

    @property
    def nbytes(self) -> int:
        """Bytes of its numbers."""
        return self.shares.nbytes
