"""Patching between two runs: what of one, put into the other at one place, makes it write what the first wrote.

Looked at is the step where the runs part; what they read is of one length, so that a row of one is a row of the other. LD is
the logit of what A wrote there less that of what B wrote. The effect of a place is (LD of B patched − LD of B)/(LD of A − LD
of B): 0, it changes nothing; 1, with it B is as sure of A's token as A was (Meng et al. 2022; Zhang & Nanda 2024). Edits and
mistakes of either run stay in force in its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_viz.analysis.comparison import check_traces
from transformer_viz.analysis.knock_out import HeadPlace
from transformer_viz.attribution.run import Read, Run
from transformer_viz.edits import Place
from transformer_viz.errors import OptionError, listed
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.model.tap import Site, TapName
from transformer_viz.terms import KIND_TITLES, Kind
from transformer_viz.trace.trace import Trace

BY: dict[str, TapName] = {"head": "heads", "layer": "added"}
"""What is put into the other run: one head's output, or what all heads of a layer add together."""
_LEAST = 1e-3
"""Of a difference of logits that can be divided by; in single precision less may be rounding."""
Kept = Mapping[tuple[Kind, int], Tensor]
"""Of each kind and layer, (1, head, query, d_v) or (1, query, d_model)."""


@dataclass(frozen=True)
class Effect:
    """Of one place: a head, or a layer, at one query; all counts from 0."""

    place: Place
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

    def largest(self, n: int) -> tuple[Effect, ...]:
        """The places with the largest effects of either sign."""
        every = [
            Effect(Place(kind, self.layers[kind][layer], *head), query, float(effects[layer, *head, query]))
            for kind, effects in self.effects.items()
            for layer, *head, query in np.ndindex(*effects.shape)
        ]
        return tuple(sorted(every, key=lambda each: -abs(each.value))[:n])


def patch(reader: LoadedModel, a: Trace, b: Trace, *, by: str = "head", kind: Kind | None = None) -> Patching:
    """How much each place of A, put into B alone, makes B write what A wrote.

    Args:
        reader: the model that made both runs.
        a: where the outputs come from.
        b: where they are put.
        by: `head`, each head's output at each query, or `layer`, what all heads of a layer add to each.
        kind: of attention; None = every kind that the model has.

    Raises:
        OptionError: an impossible argument, runs that cannot be laid on each other, or a model that tells no such thing.
        DeviceError: the device ran out of memory.
    """
    sizes = reader.model.sizes
    if by not in BY:
        raise OptionError(f"by={by!r} is not known; choose one of {listed(BY)}")
    if kind is not None and kind not in sizes.kinds:
        raise OptionError(f"kind {kind!r} is not possible for {reader.name}; it has {listed(sizes.kinds)}")
    with devices.memory_errors(reader.device), devices.few_threads(reader.device, reader.n_parameters), torch.inference_mode():
        pair = _Pair.of(reader, a, b, BY[by])
        effects = {each: pair.effects(each).numpy() for each in sizes.kinds if kind in (None, each)}
    tokens = a.output_tokens[pair.step], b.output_tokens[pair.step]
    return Patching(by, pair.step, tokens, pair.differences, effects, {each: sizes.layers[each] for each in effects})


def patched(reader: LoadedModel, a: Trace, b: Trace, heads: Sequence[HeadPlace], query: int | None = None) -> np.ndarray:
    """Logits of B with the outputs of some heads of A, float64 (step, vocabulary), up to the step where the runs part.

    Args:
        reader: the model that made both runs.
        a: where the outputs come from.
        b: where they are put.
        heads: put together.
        query: at this row alone; None = at all.

    Raises:
        OptionError: as `patch`.
    """
    with devices.memory_errors(reader.device), devices.few_threads(reader.device, reader.n_parameters), torch.inference_mode():
        pair = _Pair.of(reader, a, b, "heads")
        chosen = {at: torch.zeros(kept.shape[:3], dtype=torch.bool, device=kept.device) for at, kept in pair.kept.items()}
        for place in heads:
            here = chosen.get((place.kind, place.layer))
            if here is None or not 0 <= place.head < here.shape[1]:
                raise OptionError(f"{reader.name} has no head {place}")
            if query is not None and not 0 <= query < here.shape[2]:
                raise OptionError(f"query={query} is not possible for {place}; it has rows 0 to {here.shape[2] - 1} here")
            here[:, place.head, slice(None) if query is None else query] = True
        return pair.b.logits(pair.read, _Put("heads", pair.kept, chosen))[0].double().cpu().numpy()


@dataclass(frozen=True)
class _Pair:
    """Two runs that can be laid on each other.

    Attributes:
        b: where outputs are put.
        read: what B read up to the step.
        step: where the runs part.
        tokens: int (2,), what A wrote there, and what B.
        name: of what is put.
        kept: A's.
        differences: LD of A and of B.
    """

    b: Run
    read: Read
    step: int
    tokens: Tensor
    name: TapName
    kept: Kept
    differences: tuple[float, float]

    @classmethod
    def of(cls, reader: LoadedModel, a: Trace, b: Trace, name: TapName) -> "_Pair":
        check_traces(a=a, b=b)
        runs = [Run.of(reader, trace) for trace in (a, b)]
        step = _step(*runs)
        reads = [run.read.until(step + 1) for run in runs]
        tokens = torch.stack([run.written[step] for run in runs])
        kept = _Kept(name)
        logits = [run.logits(read, tap) for run, read, tap in zip(runs, reads, (kept, None), strict=True)]
        of_a, of_b = (float(_difference(each, tokens)) for each in logits)
        if not abs(of_a - of_b) > _LEAST:
            raise OptionError(
                f"where the runs part, A's token has the same lead over B's in both ({of_a:.3g} and {of_b:.3g}), so there is "
                "nothing to put back; compare runs that differ in what they read or in their edits"
            )
        return cls(runs[1], reads[1], step, tokens, name, kept.seen, (of_a, of_b))

    def effects(self, kind: Kind) -> Tensor:
        """float64 (layer, head, query) or (layer, query) on the CPU, each place a text of a batch."""
        layers = self.b.model.model.sizes.layers[kind]
        if missing := [layer for layer in layers if (kind, layer) not in self.kept]:
            raise OptionError(
                f"{self.b.model.name} does not tell what all heads add together in layer {missing[0] + 1} of "
                f"{KIND_TITLES[kind]}; by='head' can be had of every model that writes"
            )
        shape = (len(layers), *self.kept[kind, layers[0]].shape[1:-1])
        texts = self.read.repeated(int(np.prod(shape)))
        of_a, of_b = self.differences
        found = []
        for part in self.b.parts(texts):
            places = torch.arange(len(texts), device=self.tokens.device)
            one_each = (places[part, None] == places).view(-1, *shape)
            chosen = {(kind, layer): one_each[:, i] for i, layer in enumerate(layers)}
            logits = self.b.logits(texts[part], _Put(self.name, self.kept, chosen))
            found.append((_difference(logits, self.tokens) - of_b) / (of_a - of_b))
        return torch.cat(found).view(shape).cpu()


def _step(a: Run, b: Run) -> int:
    """Where they part, of two runs whose rows mean the same.

    Raises:
        OptionError: they do not part, or are of different lengths, or have no pass over all rows.
    """
    n_a, n_b = (len(run.trace.source_tokens) or run.trace.n_given + 1 for run in (a, b))
    if n_a != n_b:
        side = "source" if a.trace.source_tokens else "prompt"
        raise OptionError(
            f"A read {n_a} {side} tokens and B {n_b}: patching needs as many, so that a place in one is a place in the other"
        )
    for name, run in (("A", a), ("B", b)):
        if run.is_stepwise:
            raise OptionError(
                f"in run {name} an edit or a mistake lets rows see later tokens, and each step was a pass of its own: "
                "no pass over all rows has what its heads gave"
            )
    n = min(len(a.written), len(b.written))
    first = a.trace.n_given
    apart = (a.written[first:n] != b.written[first:n]).nonzero()
    if not len(apart):
        raise OptionError(
            "both runs write the same tokens as far as both go, so that there is no difference to find the place of"
        )
    return first + int(apart[0])


def _difference(logits: Tensor, tokens: Tensor) -> Tensor:
    """float64 (batch,): at the last row, the first token's logit less the second's."""
    of_both = logits[:, -1, tokens].double()
    return of_both[:, 0] - of_both[:, 1]


class _Kept:
    """A tap that keeps one intermediate of every attention."""

    def __init__(self, name: TapName) -> None:
        self.names = frozenset({name})
        self.seen: dict[tuple[Kind, int], Tensor] = {}

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        if name in self.names:
            self.seen[site.kind, site.layer] = value
        return value


class _Put:
    """A tap that puts what was kept where it is chosen: bool (text, head, query), or (text, query)."""

    def __init__(self, name: TapName, kept: Kept, chosen: Mapping[tuple[Kind, int], Tensor]) -> None:
        self.names, self._kept, self._chosen = frozenset({name}), kept, chosen

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        at = (site.kind, site.layer)
        if name not in self.names or at not in self._chosen:
            return value
        return torch.where(self._chosen[at][..., None], self._kept[at], value)
