"""Heads taken away: each alone, two at once, and one after the other as long as the answers stay.

Answers are the true ones where a task knows them, and else what the run wrote. All heads, or sets of heads, of a text are one
batch. Edits and mistakes of the runs stay in force.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from transformer_viz.addresses import HeadPlace
from transformer_viz.analysis import knock_out as summary
from transformer_viz.analysis.knock_out import HeadSet, KnockOut, Outcome
from transformer_viz.attribution.run import Run
from transformer_viz.errors import OptionError, listed
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.model.sizes import Sizes
from transformer_viz.model.tap import Change, Keep, Site, Tap, compose
from transformer_viz.terms import INSTEAD, KINDS
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.progress import OnProgress, of_part

MOST_PAIRED = 32
Means = Mapping[Site, Tensor]
"""Of each attention, (head, d_v)."""


def knock_out(
    reader: LoadedModel,
    traces: Sequence[Trace],
    *,
    how: str = "zero",
    heads: Sequence[HeadPlace] | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> KnockOut:
    """What the runs of a model lose without each of its heads.

    Args:
        reader: the model that made the runs.
        traces: the runs.
        how: `zero`, `mean` or `uniform`.
        heads: those that are taken away; by default every one.
        seed: of the resampling of texts.
        on_progress: is called before each part with the share that is done, from 0 to 1; what it raises ends the work.

    Raises:
        OptionError: an impossible argument, or a run of another model.
    """
    every = places(reader.model.sizes)
    chosen = every if heads is None else tuple(heads)
    if unknown := [place for place in chosen if place not in every]:
        raise OptionError(f"{reader.name} has no head {unknown[0]}; the last one is {every[-1]}")
    with devices.running(reader):
        texts = _Texts.of(reader, traces, how)
        found = texts.without([frozenset(), *(frozenset({place}) for place in chosen)], on_progress)
    return KnockOut(
        how=how,
        n_texts=len(texts.runs),
        n_known=texts.n_known,
        exact_before=summary.exact(found[frozenset()]),
        heads=summary.effects(found, seed),
    )


def interactions(reader: LoadedModel, traces: Sequence[Trace], heads: Sequence[HeadPlace], *, how: str = "zero") -> np.ndarray:
    """(head, head): how much more is lost without two heads than without each, Δ(ab) − Δ(a) − Δ(b), in nats a token.

    Raises:
        OptionError: more than `MOST_PAIRED` heads, or as `knock_out`.
    """
    if not 2 <= len(set(heads)) == len(heads) <= MOST_PAIRED:
        raise OptionError(f"{len(heads)} heads cannot be paired; 2 to {MOST_PAIRED} different ones are possible")
    with devices.running(reader):
        found = _Texts.of(reader, traces, how).without([frozenset(each) for n in (1, 2) for each in combinations(heads, n)])
    return summary.interactions(found, heads)


def removed(
    reader: LoadedModel, traces: Sequence[Trace], *, how: str = "zero", least: float = 1.0
) -> tuple[tuple[HeadPlace, ...], tuple[HeadPlace, ...]]:
    """Heads removed one after the other, always the one without which most answers stay, and of equal ones the most probable.

    Args:
        reader: the model that made the runs.
        traces: the runs.
        how: as in `knock_out`.
        least: the share of the answers that were right that must stay.

    Returns:
        What could be removed, in that order, and what is left and suffices. A smaller set that suffices may exist: this one is
        the smallest in so far as none of its heads can be spared alone.
    """
    left, gone = list(places(reader.model.sizes)), list[HeadPlace]()
    with devices.running(reader):
        texts = _Texts.of(reader, traces, how)
        enough = least * texts.without([frozenset()])[frozenset()].is_exact.mean() - 1e-9
        while left:
            found = texts.without([frozenset({*gone, place}) for place in left])
            rank = {places: (each.is_exact.mean(), np.concatenate(each.log_p).mean()) for places, each in found.items()}
            best = max(rank, key=rank.__getitem__)
            if rank[best][0] < enough:
                break
            [place] = best - set(gone)
            gone.append(place)
            left.remove(place)
    return tuple(gone), tuple(left)


def places(sizes: Sizes) -> tuple[HeadPlace, ...]:
    """Every head of a model."""
    return tuple(
        HeadPlace(kind, layer, head)
        for kind in KINDS
        for layer in sizes.layers.get(kind, ())
        for head in range(sizes.heads[kind])
    )


@dataclass(frozen=True)
class _Texts:
    """Runs with their answers in the place of what they wrote.

    Attributes:
        runs: each with its answer.
        change: makes a tap that takes heads away, from (text, head) of each attention.
        n_known: true answers among them.
    """

    runs: tuple[Run, ...]
    change: Callable[[Mapping[Site, Tensor]], Tap | None]
    n_known: int

    @classmethod
    def of(cls, reader: LoadedModel, traces: Sequence[Trace], how: str) -> "_Texts":
        if how not in INSTEAD:
            raise OptionError(f"how={how!r} is not known; choose one of {listed(INSTEAD)}")
        if isinstance(traces, Trace) or not traces:
            raise OptionError("heads are taken away over a list of one or more runs")
        runs = tuple(_with_answer(Run.of(reader, trace)) for trace in traces)
        means = _means(runs) if how == "mean" else {}
        n_known = sum(trace.expected_tokens is not None for trace in traces)
        return cls(runs, lambda gone: _ablation(gone, how, means), n_known)

    def without(self, sets: Sequence[HeadSet], on_progress: OnProgress | None = None) -> dict[HeadSet, Outcome]:
        """All texts without each of these sets of heads."""
        n = len(self.runs)
        found = [self._of_run(run, sets, of_part(on_progress, n_done, n)) for n_done, run in enumerate(self.runs)]
        return {
            places: Outcome(tuple(log_p[i] for log_p, _ in found), np.array([is_exact[i] for _, is_exact in found]))
            for i, places in enumerate(sets)
        }

    def _of_run(self, run: Run, sets: Sequence[HeadSet], on_progress: OnProgress) -> tuple[np.ndarray, np.ndarray]:
        sizes = run.model.model.sizes
        gone = {Site(kind, layer): torch.zeros(len(sets), sizes.heads[kind], dtype=torch.bool, device=run.written.device)
                for kind in sizes.kinds for layer in sizes.layers[kind]}  # fmt: skip
        for i, places in enumerate(sets):
            for place in places:
                gone[Site(place.kind, place.layer)][i, place.head] = True

        def tap_of(part: slice) -> Tap | None:
            on_progress(part.start / len(sets))
            return self.change({at: each[part] for at, each in gone.items()})

        log_p, is_first = run.outcomes_of(run.read.repeated(len(sets)), tap_of)
        own = ~run.read.target_padding[0].cpu() & (torch.arange(len(run.written)) >= run.trace.n_given)
        return (log_p - run.log_p)[:, own].numpy(), is_first[:, own].all(1).numpy()


def _with_answer(run: Run) -> Run:
    """The same run, reading and writing its true answer where it is known."""
    tokens, task = run.trace.expected_tokens, run.model.task
    if tokens is None or task is None or run.model.model.start_id is None:
        return run
    written = torch.tensor(task.target_vocabulary.encode(tokens), device=run.written.device)
    read = torch.cat([written.new_tensor([run.model.model.start_id]), written[:-1]])[None]
    padding = torch.zeros_like(read, dtype=torch.bool)
    return replace(run, read=replace(run.read, target=read, target_padding=padding), written=written)


def _means(runs: Iterable[Run]) -> Means:
    """Each head's mean output over all rows of all runs that are no padding."""
    sums: dict[Site, Tensor] = {}
    counts: Counter[Site] = Counter()
    for run in runs:
        keep = Keep("heads")
        run.logits(run.read, keep)
        for site, kept in keep.kept.items():
            real = ~(run.read.source_padding if site.kind == "encoder" else run.read.target_padding)[0]
            sums[site] = sums.get(site, 0.0) + kept["heads"][0, :, real].sum(1)
            counts[site] += int(real.sum())
    return {site: total / counts[site] for site, total in sums.items()}


def _ablation(gone: Mapping[Site, Tensor], how: str, means: Means) -> Tap | None:
    """Ablates heads: of each attention bool (text, head), True = gone."""
    masks = Keep("mask")

    def ablated(site: Site, value: Tensor) -> Tensor:
        instead = value.new_zeros(()) if how == "zero" else means[site][:, None] if how == "mean" else _uniform(site, value)
        return torch.where(gone[site][:, :, None, None], instead, value)

    def _uniform(site: Site, weights: Tensor) -> Tensor:
        allowed = (~masks.kept[site]["mask"]).to(weights.dtype)
        return allowed / allowed.sum(-1, keepdim=True).clamp_min(1)

    return compose(masks, Change("weights", ablated)) if how == "uniform" else Change("heads", ablated)
