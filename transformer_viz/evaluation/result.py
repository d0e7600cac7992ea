"""Accuracy of a checkpoint at each source length. Nothing here needs torch."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transformer_viz.analysis.intervals import wilson

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class AccuracyAtLength:
    """The accuracy on all strings of one length.

    Attributes:
        length: symbols of the source.
        is_trained: whether training drew sources of this length.
        n_strings: how many were decoded.
        n_exact: how many came out right, `<end>` included.
        token_accuracy: share of the true answers' tokens, `<end>` included, that were written at their place.
        n_letters: how many steps had a true key.
        head_mass: mean weight on the true key over those steps, by layer and head; None where there were none.
    """

    length: int
    is_trained: bool
    n_strings: int
    n_exact: int
    token_accuracy: float
    n_letters: int
    head_mass: tuple[tuple[float, ...], ...] | None

    @property
    def exact_match(self) -> float:
        """Share of the strings that came out right."""
        return self.n_exact / self.n_strings

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the exact match."""
        return wilson(self.n_exact, self.n_strings)


@dataclass(frozen=True, kw_only=True)
class AccuracyByLength:
    """Every length that was asked for and has strings, shortest first.

    Attributes:
        checkpoint: its name.
        points: one for each length.
        trained: the shortest and the longest source of training.
        samples: strings that were asked for, per length.
        seed: of the strings.
        fixed_head: layer and head whose mass is reported, where it was chosen elsewhere.
    """

    checkpoint: str
    points: tuple[AccuracyAtLength, ...]
    trained: tuple[int, int]
    samples: int
    seed: int
    fixed_head: tuple[int, int] | None = None

    @property
    def best_head(self) -> tuple[int, int] | None:
        """The one layer and head with the most weight on the true keys over all steps of the trained lengths.

        Over all lengths where none is trained; None where no step has a true key.
        """
        if self.fixed_head is not None:
            return self.fixed_head
        known = [point for point in self.points if point.head_mass is not None]
        counted = [point for point in known if point.is_trained] or known
        if not counted:
            return None
        mass = np.sum([np.asarray(point.head_mass) * point.n_letters for point in counted], axis=0)
        layer, head = np.unravel_index(int(mass.argmax()), mass.shape)
        return int(layer), int(head)

    def best_mass(self, point: AccuracyAtLength) -> float | None:
        """The mass of that head at one length."""
        best = self.best_head
        return None if best is None or point.head_mass is None else point.head_mass[best[0]][best[1]]

    def to_json(self) -> dict[str, Any]:
        """Plain data; layers and heads from 0."""
        best = self.best_head
        return {
            "checkpoint": self.checkpoint,
            "trained": list(self.trained),
            "samples": self.samples,
            "seed": self.seed,
            "best_head": None if best is None else {"layer": best[0], "head": best[1]},
            "lengths": self._rows(),
        }

    def to_frame(self) -> "pd.DataFrame":
        """One row a length."""
        import pandas as pd

        return pd.DataFrame(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "length": point.length,
                "is_trained": point.is_trained,
                "strings": point.n_strings,
                "exact_match": round(point.exact_match, 6),
                "exact_match_low": round(point.interval[0], 6),
                "exact_match_high": round(point.interval[1], 6),
                "token_accuracy": round(point.token_accuracy, 6),
                "best_head_mass": None if (mass := self.best_mass(point)) is None else round(mass, 6),
            }
            for point in self.points
        ]
