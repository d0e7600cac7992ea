"""The counter-proof: how far weights can be moved without the output noticing (after Jain & Wallace 2019).

The weights A of some heads are moved towards others, B: (1 − λ)A + λB, all rows at once. Searched is a large λ with which no
output probability changes by more than ε. Probabilities need not be monotone in λ, so what bisection finds is the farthest
found and not the farthest possible. Edits and mistakes of the run stay in force, and what they mask gets nothing.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from transformer_viz.addresses import HeadPlace, parse
from transformer_viz.analysis.counter_proof import CounterProof, Moved
from transformer_viz.attribution.knock_out import places
from transformer_viz.attribution.run import Run
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.model.tap import Change, Keep, Site, Tap
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.progress import OnProgress

EPSILON = 0.01
N_HALVINGS = 12
"""After which λ is known to 1/4096."""


def counter_proof(
    reader: LoadedModel, trace: Trace, *, scope: str, epsilon: float = EPSILON, on_progress: OnProgress | None = None
) -> CounterProof:
    """How far the weights of some heads can be moved without the output noticing.

    Args:
        reader: the model that made the run.
        trace: the run.
        scope: a head (`cross.2.3`), a layer (`cross.2`) or all heads of a kind (`cross`), which are moved together.
        epsilon: what no output probability of a pass over the run's tokens may change by more than.
        on_progress: is called before each halving with the share that is done, from 0 to 1; what it raises ends the work.

    Raises:
        OptionError: an impossible argument, a run of another model, or one whose steps were passes of their own.
        DeviceError: the device ran out of memory.
    """
    heads = _heads(reader, scope)
    if not 0 < epsilon < 1:
        raise OptionError(f"epsilon={epsilon!r} is not possible; it is a change of probability above 0 and below 1")
    with devices.running(reader):
        search = _Search.of(Run.of(reader, trace), heads)
        shares = search.shares(epsilon, on_progress)
        weights = search.blended(shares)
        changes = search.changes(weights)
    moved = zip(TARGETS, shares.tolist(), weights.cpu().numpy(), search.distances(weights), changes.tolist(), strict=True)
    return CounterProof(
        scope=scope,
        heads=heads,
        epsilon=epsilon,
        weights=search.weights.float().cpu().numpy(),
        moved=tuple(Moved(*each) for each in moved),
    )


def scopes(reader: LoadedModel) -> tuple[str, ...]:
    """Of every kind: each head alone, each layer, all together."""
    heads = places(reader.model.sizes)
    layers = dict.fromkeys(f"{head.kind}.{head.layer + 1}" for head in heads)
    return (*map(str, heads), *layers, *reader.model.sizes.kinds)


def _heads(reader: LoadedModel, scope: str) -> tuple[HeadPlace, ...]:
    every = places(reader.model.sizes)
    with suppress(OptionError):
        named, row = parse(scope)
        if row is None and (heads := tuple(filter(named.holds, every))):
            return heads
    raise OptionError(
        f"{reader.name} has no heads {scope[:40]!r}; a scope is a head such as {every[-1]}, a layer such as "
        f"{str(every[-1]).rpartition('.')[0]}, or all heads of a kind, such as {every[-1].kind}"
    )


def _uniform(weights: Tensor, allowed: Tensor) -> Tensor:
    return allowed.to(weights.dtype) / allowed.sum(-1, keepdim=True).clamp_min(1)


def _first(weights: Tensor, allowed: Tensor) -> Tensor:
    return (allowed & (allowed.cumsum(-1) == 1)).to(weights.dtype)


def _last(weights: Tensor, allowed: Tensor) -> Tensor:
    return _first(weights, allowed.flip(-1)).flip(-1)


def _reversed(weights: Tensor, allowed: Tensor) -> Tensor:
    """The allowed keys' weights in the opposite order, at the allowed keys."""
    first_to_last = (~allowed).to(torch.uint8).argsort(stable=True, dim=-1)
    n, place = allowed.sum(-1, keepdim=True), torch.arange(weights.shape[-1], device=weights.device)
    opposite = torch.where(place < n, n - 1 - place, place)
    return torch.zeros_like(weights).scatter(-1, first_to_last, weights.gather(-1, first_to_last.gather(-1, opposite)))


TARGETS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "uniform": _uniform,
    "first key": _first,
    "last key": _last,
    "reversed": _reversed,
}
"""What weights are moved towards: from weights and bool, True = allowed, both (layer, head, query, key); over allowed keys."""


@dataclass(frozen=True)
class _Search:
    """One scope of one run.

    Attributes:
        run: the run.
        heads: the scope, whole layers or one head of one.
        weights: (layer, head, query, key), as they were.
        targets: (target, layer, head, query, key).
    """

    run: Run
    heads: tuple[HeadPlace, ...]
    weights: Tensor
    targets: Tensor

    @classmethod
    def of(cls, run: Run, heads: tuple[HeadPlace, ...]) -> "_Search":
        if run.is_stepwise:
            raise OptionError(
                "in this run an edit or a mistake lets rows see later tokens, and each step was a pass of its own: "
                "no pass over all rows has its weights"
            )
        keep = Keep("mask", "weights")
        run.logits(run.read, keep)
        scope = [head.head for head in heads if head.layer == heads[0].layer]
        seen = [kept for site, kept in keep.kept.items() if site in {Site(head.kind, head.layer) for head in heads}]
        weights = torch.stack([kept["weights"][0, scope] for kept in seen])
        allowed = torch.stack([~kept["mask"].expand_as(kept["weights"])[0, scope] for kept in seen])
        targets = torch.stack([target(weights, allowed) for target in TARGETS.values()])
        # A row that may look nowhere stays as it is.
        return cls(run, heads, weights, torch.where(allowed.any(-1, keepdim=True), targets, weights))

    def shares(self, epsilon: float, on_progress: OnProgress | None) -> Tensor:
        """float64 (target,): λ, by bisection of all targets at once."""
        low = torch.zeros(len(TARGETS), dtype=torch.float64, device=self.weights.device)
        high = torch.ones_like(low)
        # First 1 itself, then halves.
        trial = high
        for n_done in range(1 + N_HALVINGS):
            if on_progress is not None:
                on_progress(n_done / (1 + N_HALVINGS))
            unnoticed = self.changes(self.blended(trial)) <= epsilon
            low, high = torch.where(unnoticed, trial, low), torch.where(unnoticed, high, trial)
            trial = (low + high) / 2
        return low

    def blended(self, shares: Tensor) -> Tensor:
        """float32 (target, layer, head, query, key) from (target,)."""
        share = shares.view(-1, 1, 1, 1, 1)
        return ((1 - share) * self.weights + share * self.targets).float()

    def changes(self, weights: Tensor) -> Tensor:
        """float64 (target,): the greatest change of an output probability at a row that is no padding."""
        texts = self.run.read.repeated(len(weights))
        found = []
        for part in self.run.parts(texts):
            after = self.run.logits(texts[part], self._moved(weights[part])).double().softmax(-1)
            apart = (after - self._before).abs()[:, ~self.run.read.target_padding[0]]
            found.append(apart.amax((1, 2)))
        return torch.cat(found)

    def _moved(self, weights: Tensor) -> Tap:
        """Puts weights, (text, layer, head, query, key), in the place of those of the scope."""
        layers = sorted({head.layer for head in self.heads})
        scope = sorted({head.head for head in self.heads})

        def move(site: Site, value: Tensor) -> Tensor:
            if site.kind != self.heads[0].kind or site.layer not in layers:
                return value
            value = value.clone()
            value[:, scope] = weights[:, layers.index(site.layer)].to(value.dtype)
            return value

        return Change("weights", move)

    def distances(self, weights: Tensor) -> list[float]:
        """Of each target, half the sum of |A′ − A| over keys, the mean over rows that are no padding."""
        read = self.run.read
        padding = read.source_padding if self.heads[0].kind == "encoder" else read.target_padding
        apart = (weights.double() - self.weights.float()).abs().sum(-1)[..., ~padding[0]] / 2
        return apart.mean((1, 2, 3)).tolist()

    @cached_property
    def _before(self) -> Tensor:
        """float64 (step, vocabulary)."""
        found = self.run.logits(self.run.read)[0].double().softmax(-1)
        if not bool(found[~self.run.read.target_padding[0]].isfinite().all()):
            raise OptionError("in this run a mistake makes probabilities that are no numbers, so nothing can be unnoticed")
        return found
