"""The result of a counter-proof: how far the weights of some heads were moved."""

from dataclasses import dataclass

import numpy as np

from transformer_viz.addresses import HeadAddress
from transformer_viz.errors import OptionError
from transformer_viz.numbers_in_words import number_words, percent_words


@dataclass(frozen=True)
class MovedWeights:
    """Weights moved towards one target, as they were applied.

    Attributes:
        target: `uniform`, `first key`, `last key` or `reversed`.
        share: λ; 1, the weights are the target's.
        weights: float32 (layer, head, query, key), of the scope's layers and heads.
        distance: the share of the weight that lies at other keys than before, ½ Σ|A′ − A|, the mean over rows.
        change: the greatest change of an output probability with these weights, from a pass with `weights` as they are here.
    """

    target: str
    share: float
    weights: np.ndarray
    distance: float
    change: float


@dataclass(frozen=True)
class CounterProof:
    """The distance by which the weights of one scope were moved.

    Attributes:
        scope: the address of the heads, such as `cross.2`.
        heads: layer and head of each.
        epsilon: the most by which an output probability may change.
        weights: float32 (layer, head, query, key), before they were moved.
        moved: the weights moved towards each target.
    """

    scope: str
    heads: tuple[HeadAddress, ...]
    epsilon: float
    weights: np.ndarray
    moved: tuple[MovedWeights, ...]

    def __repr__(self) -> str:
        """One line."""
        return f"<CounterProof {self.words}>"

    @property
    def farthest(self) -> MovedWeights:
        """The one with most of its weight at other keys than before; a λ of 1 says little where the head looks there anyway."""
        return max(self.moved, key=lambda each: each.distance)

    def of(self, head: str | HeadAddress) -> np.ndarray:
        """One head's weights before they were moved, (query, key)."""
        return self.weights[self._at(head)]

    def farthest_of(self, head: str | HeadAddress) -> np.ndarray:
        """One head's weights in `farthest`, (query, key)."""
        return self.farthest.weights[self._at(head)]

    def _at(self, head: str | HeadAddress) -> tuple[int, int]:
        place = HeadAddress.read(head)
        if place not in self.heads:
            raise OptionError(f"{place} was not moved with {self.scope}")
        layers, heads = (sorted({getattr(each, part) for each in self.heads}) for part in ("layer", "head"))
        return layers.index(place.layer), heads.index(place.head)

    def towards(self, target: str) -> MovedWeights:
        """The weights moved towards one target."""
        return next(moved for moved in self.moved if moved.target == target)

    @property
    def words(self) -> str:
        """A sentence."""
        farthest = self.farthest
        if farthest.distance == 0:
            return f"{self.scope}: no other weights were found that the output does not notice"
        return (
            f"{self.scope}: the farthest found has {percent_words(farthest.distance)} of the weight elsewhere "
            f"(λ = {number_words(farthest.share, 2)} towards {farthest.target}), and no output probability changes by more "
            f"than {number_words(farthest.change, 4)}"
        )
