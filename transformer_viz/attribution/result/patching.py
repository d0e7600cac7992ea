"""The result of patching one run into another, and the check that the rows of the two runs correspond."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from transformer_viz.addresses import AttentionAddress
from transformer_viz.errors import OptionError
from transformer_viz.numbers_in_words import count_words
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace


@dataclass(frozen=True)
class PatchEffect:
    """The effect of patching one place: a head, or a layer, at one query; all counts from 0."""

    place: AttentionAddress
    query: int
    value: float


@dataclass(frozen=True)
class Patching:
    """Every place alone.

    Attributes:
        by: `head` or `layer`.
        step: where the runs part, from 0.
        tokens: what A wrote there, and what B.
        differences: LD of A and of B.
        effects: by kind, float64 (layer, head, query) or (layer, query); what the decoder reads up to the step.
        layers: by kind, the number of each of these layers.
    """

    by: str
    step: int
    tokens: tuple[str, str]
    differences: tuple[float, float]
    effects: Mapping[Kind, np.ndarray]
    layers: Mapping[Kind, tuple[int, ...]]

    def __repr__(self) -> str:
        """One line."""
        (a, b), n_places = self.tokens, sum(effects.size for effects in self.effects.values())
        return f"<Patching by {self.by}: {count_words(n_places, 'place')} at step {self.step}, {a!r} or {b!r}>"

    def largest(self, n: int) -> tuple[PatchEffect, ...]:
        """The places with the largest effects of either sign."""
        every = [
            PatchEffect(AttentionAddress(kind, self.layers[kind][layer], *head), query, float(effects[layer, *head, query]))
            for kind, effects in self.effects.items()
            for layer, *head, query in np.ndindex(*effects.shape)
        ]
        return tuple(sorted(every, key=lambda each: -abs(each.value))[:n])

    def at(self, place: str | AttentionAddress, query: int) -> PatchEffect | None:
        """The effect at one head or layer and one query, from 0; None where it was not measured."""
        place = AttentionAddress.read(place)
        layers, effects = self.layers.get(place.kind, ()), self.effects.get(place.kind, np.empty(0))
        head = () if place.head is None else (place.head,)
        if place.layer not in layers or len(head) != effects.ndim - 2:
            return None
        at = (layers.index(place.layer), *head, query)
        is_there = all(0 <= each < n for each, n in zip(at, effects.shape, strict=True))
        return PatchEffect(place, query, float(effects[at])) if is_there else None


@dataclass(frozen=True)
class PatchingSize:
    """The size of a patching before it begins.

    Attributes:
        n_places: where something is patched, each a pass of its own.
        n_tokens: that each pass reads.
        layers: by kind, their numbers.
        most: how many places there may be of this model with as many tokens.
    """

    n_places: int
    n_tokens: int
    layers: Mapping[Kind, tuple[int, ...]]
    most: int

    @property
    def n_layers(self) -> int:
        """The number for all kinds of attention together."""
        return sum(map(len, self.layers.values()))

    @property
    def most_layers(self) -> int:
        """The most layers that may be asked for at once."""
        return min(self.n_layers, max(1, self.most * self.n_layers // self.n_places))


@dataclass(frozen=True)
class PatchedRun:
    """The output of B with the activation of A at one place.

    Attributes:
        place: a head or a layer.
        query: from 0.
        tokens: as both runs wrote them up to the step where they part; from there on by itself, the most probable each.
        probabilities: of each.
        of_both: at that step the probabilities of A's token and of B's: in A, in B, and in B with the place of A.
    """

    place: AttentionAddress
    query: int
    tokens: tuple[str, ...]
    probabilities: tuple[float, ...]
    of_both: tuple[tuple[float, ...], ...]


def parting(a: Trace, b: Trace) -> int:
    """The step at which two runs part whose rows correspond.

    Raises:
        OptionError: they write nothing, are of different lengths, or do not part.
    """
    if not (a.writes and b.writes):
        raise OptionError("patching needs a model that writes, and an encoder alone writes nothing")
    if a.model_kind != b.model_kind:
        raise OptionError("one run is of an encoder–decoder and the other is not: patching needs two runs of one model")
    n_a, n_b = (len(run.read_tokens) for run in (a, b))
    if n_a != n_b:
        side = "prompt" if a.prompt else "source"
        raise OptionError(f"A read {n_a} {side} tokens and B {n_b}: patching needs the same number in both")
    written = [run.output_tokens if run.output_ids is None else run.output_ids for run in (a, b)]
    apart = (step for step, (one, other) in enumerate(zip(*written, strict=False)) if one != other and not a.is_given(step))
    if (step := next(apart, None)) is None:
        raise OptionError("both runs write the same tokens, so there is no difference to explain; change one of the texts")
    return step
