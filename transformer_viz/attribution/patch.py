"""Patching between two runs: what of one, put into the other at one place, makes it write what the first wrote.

Looked at is the step where the runs part; what they read is of one length, so that a row of one is a row of the other. LD is
the logit of what A wrote there less that of what B wrote. The effect of a place is (LD of B patched − LD of B)/(LD of A − LD
of B): 0, it changes nothing; 1, with it B is as sure of A's token as A was (Meng et al. 2022; Zhang & Nanda 2024). Edits and
mistakes of either run stay in force in its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from transformer_viz.addresses import HeadPlace, Place
from transformer_viz.analysis.comparison import check_traces
from transformer_viz.analysis.patching import Extent, PatchedRun, Patching, parting
from transformer_viz.attribution.run import Read, Run
from transformer_viz.errors import OptionError, listed
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.model.tap import Change, Keep, Site, Tap, TapName
from transformer_viz.terms import KIND_TITLES, Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.progress import OnProgress

BY: dict[str, TapName] = {"head": "heads", "layer": "added"}
"""What is put into the other run: one head's output, or what all heads of a layer add together."""
_LEAST = 1e-3
"""Of a difference of logits that can be divided by; in single precision less may be rounding."""
MOST_WORK = 1e12
"""Multiplications of all places together: about a minute of a processor."""
Kept = Mapping[Site, Tensor]
"""Of each attention, (1, head, query, d_v) or (1, query, d_model)."""


def patch(
    reader: LoadedModel,
    a: Trace,
    b: Trace,
    *,
    by: str = "head",
    kind: Kind | None = None,
    layers: Sequence[int] | None = None,
    on_progress: OnProgress | None = None,
) -> Patching:
    """How much each place of A, put into B alone, makes B write what A wrote.

    Args:
        reader: the model that made both runs.
        a: where the outputs come from.
        b: where they are put.
        by: `head`, each head's output at each query, or `layer`, what all heads of a layer add to each.
        kind: of attention; None = every kind that the model has.
        layers: their numbers, from 0; None = all.
        on_progress: told the share of the places that is done.

    Raises:
        OptionError: an impossible argument, more places than are read at once, runs that cannot be laid on each other, or a
            model that tells no such thing.
        DeviceError: the device ran out of memory.
    """
    check_traces(a=a, b=b)
    asked = extent(reader, a, b, by=by, kind=kind, layers=layers)
    if asked.n_places > asked.most:
        raise OptionError(
            f"{asked.n_places:,} places are too many: for each {asked.n_tokens} tokens are read again, and of {reader.name} it "
            f"may be {asked.most:,}, or {asked.most_layers} of {asked.n_layers} layers by {by}. Choose layers, one kind, or "
            "by='layer'"
        )
    chosen = _chosen_layers(reader, kind, layers)
    with devices.running(reader):
        pair = _Pair.of(reader, a, b, BY[by])
        done = _Counted(asked.n_places, on_progress)
        effects = {each: pair.effects(each, chosen[each], done).numpy() for each in chosen}
    tokens = a.output_tokens[pair.step], b.output_tokens[pair.step]
    return Patching(by, pair.step, tokens, pair.differences, effects, chosen)


def extent(
    reader: LoadedModel, a: Trace, b: Trace, *, by: str = "head", kind: Kind | None = None, layers: Sequence[int] | None = None
) -> Extent:
    """How many places `patch` would try with these arguments, and how many it may; nothing is computed.

    Raises:
        OptionError: an impossible argument, or runs that cannot be laid on each other.
    """
    if by not in BY:
        raise OptionError(f"by={by!r} is not known; choose one of {listed(BY)}")
    chosen, n_rows = _chosen_layers(reader, kind, layers), parting(a, b) + 1
    heads = reader.model.sizes.heads if by == "head" else dict.fromkeys(chosen, 1)
    rows = {each: len(a.source_tokens) if each == "encoder" else n_rows for each in chosen}
    n_places = sum(len(numbers) * heads[each] * rows[each] for each, numbers in chosen.items())
    n_tokens = len(a.source_tokens) + n_rows
    most = max(1, int(MOST_WORK / (n_tokens * reader.n_parameters)))
    return Extent(n_places, n_tokens, sum(map(len, chosen.values())), most)


def _chosen_layers(reader: LoadedModel, kind: Kind | None, layers: Sequence[int] | None) -> dict[Kind, tuple[int, ...]]:
    """By kind, the numbers of the layers that are asked for; a kind that has none of them is left out."""
    sizes = reader.model.sizes
    if kind is not None and kind not in sizes.kinds:
        raise OptionError(f"kind {kind!r} is not possible for {reader.name}; it has {listed(sizes.kinds)}")
    there = {each: tuple(sizes.layers[each]) for each in sizes.kinds if kind in (None, each)}
    if layers is None:
        return there
    known = sorted(set().union(*there.values()))
    if not layers or any(number not in known for number in layers):
        raise OptionError(f"layers={list(layers)} are not possible for {reader.name}; it has {listed(known)}, counted from 0")
    found = {each: tuple(number for number in numbers if number in layers) for each, numbers in there.items()}
    return {each: numbers for each, numbers in found.items() if numbers}


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
    with devices.running(reader):
        pair = _Pair.of(reader, a, b, "heads")
        chosen = {at: torch.zeros(kept.shape[:3], dtype=torch.bool, device=kept.device) for at, kept in pair.kept.items()}
        for place in heads:
            here = chosen.get(Site(place.kind, place.layer))
            if here is None or not 0 <= place.head < here.shape[1]:
                raise OptionError(f"{reader.name} has no head {place}")
            if query is not None and not 0 <= query < here.shape[2]:
                raise OptionError(f"query={query} is not possible for {place}; it has rows 0 to {here.shape[2] - 1} here")
            here[:, place.head, slice(None) if query is None else query] = True
        return pair.b.logits(pair.read, _put("heads", pair.kept, chosen))[0].double().cpu().numpy()


def patched_run(
    reader: LoadedModel, a: Trace, b: Trace, place: Place, query: int, *, on_progress: OnProgress | None = None
) -> PatchedRun:
    """What B writes with the output of A at one place, up to as many tokens as the longer run has.

    What both wrote before the step where they part stays; from there on the most probable token is written and read. Rules of
    a generation config are not asked.

    Args:
        reader: the model that made both runs.
        a: where the output comes from.
        b: where it is put.
        place: a head, or a layer.
        query: a row that both have, from 0.
        on_progress: told the share of the tokens that is written, at the most.

    Raises:
        OptionError: as `patch`.
    """
    with devices.running(reader):
        pair = _Pair.of(reader, a, b, BY["layer" if place.head is None else "head"])
        put, read, most = pair.put(place, query), pair.read, max(len(run.output_tokens) for run in (a, b))
        rows = pair.b.logits(read, put)[0]
        of_both = (*pair.of_both, _probabilities(rows[-1], pair.tokens))
        ids = pair.b.written[: pair.step].tolist()
        found = rows[:-1].double().softmax(-1)
        probabilities = found[torch.arange(pair.step), ids].tolist()
        while True:
            of_next = rows[-1].double().softmax(-1)
            ids.append(int(rows[-1].argmax()))
            probabilities.append(float(of_next[ids[-1]]))
            if on_progress is not None:
                on_progress(len(ids) / most)
            if ids[-1] in reader.model.end_ids or len(ids) >= most:
                break
            read = _read_too(read, ids[-1])
            rows = pair.b.logits(read, put)[0]
    tokens = (*b.output_tokens[: pair.step], *map(reader.tokenizer.label, ids[pair.step :]))
    return PatchedRun(place, query, tokens, tuple(probabilities), of_both)


def _read_too(read: Read, token: int) -> Read:
    """And one token more of the target."""
    more = read.target.new_full((len(read), 1), token)
    padding = torch.zeros_like(more, dtype=torch.bool)
    return replace(read, target=torch.cat([read.target, more], 1), target_padding=torch.cat([read.target_padding, padding], 1))


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
        of_both: probabilities of both tokens, in A and in B.
    """

    b: Run
    read: Read
    step: int
    tokens: Tensor
    name: TapName
    kept: Kept
    differences: tuple[float, float]
    of_both: tuple[tuple[float, float], tuple[float, float]]

    @classmethod
    def of(cls, reader: LoadedModel, a: Trace, b: Trace, name: TapName) -> "_Pair":
        check_traces(a=a, b=b)
        runs, step = [Run.of(reader, trace) for trace in (a, b)], parting(a, b)
        for side, run in zip("AB", runs, strict=True):
            if run.is_stepwise:
                raise OptionError(
                    f"in run {side} an edit or a mistake lets rows see later tokens, and each step was a pass of its own: "
                    "no pass over all rows has what its heads gave"
                )
        reads = [run.read.until(step + 1) for run in runs]
        tokens = torch.stack([run.written[step] for run in runs])
        keep = Keep(name)
        logits = [run.logits(read, tap) for run, read, tap in zip(runs, reads, (keep, None), strict=True)]
        of_a, of_b = (float(_difference(each, tokens)) for each in logits)
        if not abs(of_a - of_b) > _LEAST:
            raise OptionError(
                f"where the runs part, A's token has the same lead over B's in both ({of_a:.3g} and {of_b:.3g}), so there is "
                "nothing to put back; compare runs that differ in what they read or in their edits"
            )
        first, second = (_probabilities(each[0, -1], tokens) for each in logits)
        kept = {site: values[name] for site, values in keep.kept.items()}
        return cls(runs[1], reads[1], step, tokens, name, kept, (of_a, of_b), (first, second))

    def effects(self, kind: Kind, layers: Sequence[int], done: "_Counted") -> Tensor:
        """float64 (layer, head, query) or (layer, query) on the CPU, each place a text of a batch."""
        for layer in layers:
            self.check_told(kind, layer)
        shape = (len(layers), *self.kept[Site(kind, layers[0])].shape[1:-1])
        texts = self.read.repeated(int(np.prod(shape)))
        of_a, of_b = self.differences
        found = []
        for part in self.b.parts(texts):
            places = torch.arange(len(texts), device=self.tokens.device)
            one_each = (places[part, None] == places).view(-1, *shape)
            chosen = {Site(kind, layer): one_each[:, i] for i, layer in enumerate(layers)}
            logits = self.b.logits(texts[part], _put(self.name, self.kept, chosen))
            found.append((_difference(logits, self.tokens) - of_b) / (of_a - of_b))
            done.more(len(found[-1]))
        return torch.cat(found).view(shape).cpu()

    def put(self, place: Place, query: int) -> Tap:
        """What puts A's output there.

        Raises:
            OptionError: there is no such place, or the model does not tell what stands there.
        """
        if place.layer not in self.b.model.model.sizes.layers.get(place.kind, ()):
            raise OptionError(f"{self.b.model.name} has no {'layer' if place.head is None else 'head'} {place}")
        self.check_told(place.kind, place.layer)
        site = Site(place.kind, place.layer)
        kept = self.kept[site]
        at = (0, *(() if place.head is None else (place.head,)), query)
        if not all(0 <= each < n for each, n in zip(at, kept.shape, strict=False)):
            raise OptionError(f"{place} at query {query} is not there; it has {listed(kept.shape[1:-1])}, counted from 0")
        chosen = torch.zeros(kept.shape[:-1], dtype=torch.bool, device=kept.device)
        chosen[at] = True
        return _put(self.name, self.kept, {site: chosen})

    def check_told(self, kind: Kind, layer: int) -> None:
        """Raises an OptionError where nothing was kept of a layer."""
        if Site(kind, layer) not in self.kept:
            raise OptionError(
                f"{self.b.model.name} does not tell what all heads add together in layer {layer + 1} of "
                f"{KIND_TITLES[kind]}; by='head' can be had of every model that writes"
            )


class _Counted:
    """How many places are done."""

    def __init__(self, n_places: int, on_progress: OnProgress | None) -> None:
        self._n_places, self._on_progress, self._n_done = n_places, on_progress, 0

    def more(self, n: int) -> None:
        """So many more."""
        self._n_done += n
        if self._on_progress is not None:
            self._on_progress(self._n_done / self._n_places)


def _probabilities(logits: Tensor, tokens: Tensor) -> tuple[float, float]:
    """Of two tokens, from logits (vocabulary,)."""
    first, second = logits.double().softmax(-1)[tokens].tolist()
    return first, second


def _difference(logits: Tensor, tokens: Tensor) -> Tensor:
    """float64 (batch,): at the last row, the first token's logit less the second's."""
    of_both = logits[:, -1, tokens].double()
    return of_both[:, 0] - of_both[:, 1]


def _put(name: TapName, kept: Kept, chosen: Mapping[Site, Tensor]) -> Tap:
    """Puts what was kept where it is chosen: bool (text, head, query), or (text, query). Rows that were read since are as they
    are."""

    def put(site: Site, value: Tensor) -> Tensor:
        if site not in chosen:
            return value
        n_rows = kept[site].shape[-2]
        return torch.cat([torch.where(chosen[site][..., None], kept[site], value[..., :n_rows, :]), value[..., n_rows:, :]], -2)

    return Change(name, put)
