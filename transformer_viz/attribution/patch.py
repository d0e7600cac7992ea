"""Patching: one activation of a run A is put into a run B, and B is asked whether it now writes what A wrote.

The step where the two runs part is judged. Both have read texts of one length, so that their rows correspond. LD is the logit
of A's token at that step minus the logit of B's. The effect of a place is (LD of B patched − LD of B)/(LD of A − LD of B): at 0
it changes nothing, at 1 B is as sure of A's token as A was (Meng et al. 2022; Zhang & Nanda 2024). Edits and mistakes of each
run stay in force in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_viz.addresses import AttentionAddress, HeadAddress, find
from transformer_viz.attribution.rerun import Run
from transformer_viz.attribution.result.patching import PatchedRun, Patching, PatchingSize, parting
from transformer_viz.comparison.compare import check_traces
from transformer_viz.decoding.token_batch import TokenBatch
from transformer_viz.errors import OptionError, join_names
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.model.tap import RecordTap, ReplaceTap, Site, Tap, TapName
from transformer_viz.numbers_in_words import rounded_words
from transformer_viz.terms import Kind, kind_words
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.progress import OnProgress

BY: dict[str, TapName] = {"head": "heads", "layer": "added"}
"""The activation that is patched: one head's output, or what all heads of a layer add together."""
_LEAST = 1e-3
"""The least difference of logits to divide by; a smaller one may be rounding in single precision."""
MOST_WORK = 1e12
"""Multiplications of all places together: about a minute of a processor."""


def patch(
    model: LoadedModel,
    a: Trace,
    b: Trace,
    *,
    by: str = "head",
    where: str | AttentionAddress | Sequence[str | AttentionAddress] | None = None,
    on_progress: OnProgress | None = None,
) -> Patching:
    """Measures for each activation of A how far, patched into B alone, it makes B write what A wrote.

    Args:
        model: the model that made both runs.
        a: where the activations come from.
        b: where they are patched in.
        by: `head` patches each head's output at each query, `layer` what all heads of a layer add to each query.
        where: a kind of attention (`cross`) or a layer of it (`cross.2`), or several of them; None = all that the model has.
        on_progress: is called with the share of the places that is done, from 0 to 1.

    Returns:
        The effect of each place, `effects`: by kind float64 (layer, head, query), or (layer, query) by layer. At the first step
        at which the runs differ 0 changes nothing, and 1 makes B as sure of A's token as A was. `largest(n)` has the strongest.

    Raises:
        OptionError: an impossible argument, more places than may be tried at once, runs whose rows do not correspond, or a
            model that has no such activation.
        DeviceError: the device ran out of memory.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> a, b = (tv.decode(model, text) for text in ("hello world", "hellx world"))
        >>> found = tv.patch(model, a, b, where="cross.1")
        >>> found.effects["cross"].shape  # (layer, head, query)
        (1, 4, 7)
        >>> str(found.largest(1)[0].place)
        'cross.1.1'

    References:
        Meng et al. (2022), "Locating and Editing Factual Associations in GPT": https://arxiv.org/abs/2202.05262
        Zhang & Nanda (2023), "Towards Best Practices of Activation Patching in Language Models":
            https://arxiv.org/abs/2309.16042
    """
    size = extent(model, a, b, by=by, where=where)
    if size.n_places > size.most:
        raise OptionError(
            f"{size.n_places:,} places are too many for {model.name}, since {size.n_tokens} tokens are read again for each. "
            f"Possible are {size.most:,} places, or {size.most_layers} of {size.n_layers} layers by {by}. Choose layers, "
            "one kind, or by='layer'"
        )
    effects = {}
    n_done = 0
    with devices.running(model):
        pair = _Pair.of(model, a, b, BY[by])
        of_a, of_b = pair.leads
        for each, numbers in size.layers.items():
            sites = [pair.check(Site(each, layer)) for layer in numbers]
            shape = (len(sites), *pair.activations[sites[0]].shape[1:-1])
            texts = pair.inputs.repeated(int(np.prod(shape)))
            numbered = torch.arange(len(texts), device=pair.tokens.device)
            of_kind = []
            for part in pair.b.parts(texts):
                # Each text of the batch is one place.
                is_place = (numbered[part, None] == numbered).view(-1, *shape)
                tap = pair.tap({site: is_place[:, i] for i, site in enumerate(sites)})
                of_kind.append((_lead(pair.b.logits(texts[part], tap), pair.tokens) - of_b) / (of_a - of_b))
                n_done += len(of_kind[-1])
                if on_progress is not None:
                    on_progress(n_done / size.n_places)
            effects[each] = torch.cat(of_kind).view(shape).cpu().numpy()
    tokens = a.output_tokens[pair.step], b.output_tokens[pair.step]
    return Patching(by, pair.step, tokens, pair.leads, effects, size.layers)


def extent(
    model: LoadedModel,
    a: Trace,
    b: Trace,
    *,
    by: str = "head",
    where: str | AttentionAddress | Sequence[str | AttentionAddress] | None = None,
) -> PatchingSize:
    """Counts the places that `patch` would try, and those that are possible; with the arguments and errors of `patch`."""
    check_traces(a=a, b=b)
    if by not in BY:
        raise OptionError(f"by={by!r} is not known; choose one of {join_names(BY)}")
    sizes = model.network.sizes
    chosen = _layers(model, sizes.kinds if where is None else where)
    n_rows = parting(a, b) + 1
    n_places = sum(
        len(numbers) * (sizes.heads[each] if by == "head" else 1) * (len(a.source_tokens) if each == "encoder" else n_rows)
        for each, numbers in chosen.items()
    )
    n_tokens = len(a.source_tokens) + n_rows
    return PatchingSize(n_places, n_tokens, chosen, max(1, int(MOST_WORK / (n_tokens * model.n_parameters))))


def _layers(
    model: LoadedModel, where: str | AttentionAddress | Sequence[str | AttentionAddress]
) -> dict[Kind, tuple[int, ...]]:
    """The layers of each kind that are meant, in the order of the model."""
    grid = model.network.sizes.grid
    parts = [find(one, grid, model.name) for one in ([where] if isinstance(where, str | AttentionAddress) else where)]
    if heads := [part for part in parts if part.head is not None]:
        raise OptionError(f"{heads[0]} is one head, and all heads of a layer are patched, each alone; give a layer or a kind")
    if not parts:
        raise OptionError(f"where is empty; give a kind or a layer, as in cross.2, of {join_names(grid)}")
    chosen = {
        kind: tuple(n for n in numbers if any(part.kind == kind and part.layer in (None, n) for part in parts))
        for kind, (numbers, _) in grid.items()
    }
    return {kind: numbers for kind, numbers in chosen.items() if numbers}


def patched(model: LoadedModel, a: Trace, b: Trace, heads: Sequence[str | HeadAddress], query: int | None = None) -> np.ndarray:
    """Logits of B with the outputs of some heads of A, float64 (step, vocabulary), up to the step where the runs part.

    Args:
        model: the model that made both runs.
        a: where the outputs come from.
        b: where they are patched in.
        heads: patched together.
        query: at this row alone; None = at all.

    Raises:
        OptionError: as `patch`.
    """
    with devices.running(model):
        pair = _Pair.of(model, a, b, "heads")
        return pair.b.logits(pair.inputs, pair.tap_at(heads, query))[0].double().cpu().numpy()


def patched_run(
    model: LoadedModel,
    a: Trace,
    b: Trace,
    place: str | AttentionAddress,
    query: int,
    *,
    on_progress: OnProgress | None = None,
) -> PatchedRun:
    """Decodes B with one activation of A patched in, up to as many tokens as the longer run has.

    The tokens that both wrote before they part are kept; from there on the most probable token is written each time. The rules
    of a generation config are not applied.

    Args:
        model: the model that made both runs.
        a: where the activation comes from.
        b: where it is patched in.
        place: a head (`cross.2.3`) or a layer (`cross.2`).
        query: a row that both have, from 0.
        on_progress: is called with the share of the tokens that is written, from 0 to 1; the end may come earlier.

    Returns:
        What B writes with it, and how probable each token is.

    Raises:
        OptionError: as `patch`.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> a, b = (tv.decode(model, text) for text in ("hello world", "hellx world"))
        >>> run = tv.patched_run(model, a, b, "cross.1", query=6)
        >>> run.tokens[:3], len(run.probabilities) == len(run.tokens)
        (('d', 'l', 'r'), True)

    References:
        Zhang & Nanda (2023), "Towards Best Practices of Activation Patching in Language Models":
            https://arxiv.org/abs/2309.16042
    """
    most = max(len(run.output_tokens) for run in (a, b))
    place = find(place, model.network.sizes.grid, model.name)
    with devices.running(model):
        pair = _Pair.of(model, a, b, BY["layer" if place.head is None else "head"])
        tap, inputs = pair.tap_at([place], query), pair.inputs
        rows = pair.b.logits(inputs, tap)[0].double().softmax(-1)
        of_both = (*pair.of_both, tuple(rows[-1][pair.tokens].tolist()))
        ids = pair.b.written[: pair.step].tolist()
        probabilities = rows[torch.arange(pair.step), ids].tolist()
        while True:
            ids.append(int(rows[-1].argmax()))
            probabilities.append(float(rows[-1][ids[-1]]))
            if on_progress is not None:
                on_progress(len(ids) / most)
            if ids[-1] in model.network.end_ids or len(ids) >= most:
                break
            padding = torch.cat([inputs.target_padding, inputs.target_padding.new_zeros(1, 1)], 1)
            inputs = inputs.with_target(torch.cat([inputs.target, inputs.target.new_tensor([[ids[-1]]])], 1), padding)
            rows = pair.b.logits(inputs, tap)[0].double().softmax(-1)
    tokens = (*b.output_tokens[: pair.step], *map(model.tokenizer.label, ids[pair.step :]))
    return PatchedRun(place, query, tokens, tuple(probabilities), of_both)


@dataclass(frozen=True)
class _Pair:
    """Two runs that can be aligned.

    Attributes:
        b: where activations are patched in.
        inputs: what B read up to the step.
        step: where the runs part.
        tokens: int (2,), what A wrote there, and what B.
        name: of the activations.
        activations: A's; of each attention (1, head, query, d_v) or (1, query, d_model).
        leads: LD of A and of B.
        of_both: probabilities of both tokens, in A and in B.
    """

    b: Run
    inputs: TokenBatch
    step: int
    tokens: Tensor
    name: TapName
    activations: Mapping[Site, Tensor]
    leads: tuple[float, float]
    of_both: tuple[tuple[float, ...], tuple[float, ...]]

    @classmethod
    def of(cls, model: LoadedModel, a: Trace, b: Trace, name: TapName) -> "_Pair":
        check_traces(a=a, b=b)
        runs, step = [Run.of(model, trace) for trace in (a, b)], parting(a, b)
        for side, run in zip("AB", runs, strict=True):
            run.check_one_pass("no pass over all rows has what its heads gave", f"run {side}")
        inputs = [run.inputs.until(step + 1) for run in runs]
        tokens = torch.stack([run.written[step] for run in runs])
        keep = RecordTap(name)
        logits = [run.logits(read, tap) for run, read, tap in zip(runs, inputs, (keep, None), strict=True)]
        of_a, of_b = (float(_lead(side_logits, tokens)) for side_logits in logits)
        if not abs(of_a - of_b) > _LEAST:
            raise OptionError(
                f"both runs prefer A's token equally at the step where they differ ({rounded_words(of_a, 3)} and "
                f"{rounded_words(of_b, 3)}), so there is nothing to bring back; compare runs with other texts or edits"
            )
        of_both = tuple(tuple(side_logits[0, -1].double().softmax(-1)[tokens].tolist()) for side_logits in logits)
        activations = {site: kept[name] for site, kept in keep.kept.items()}
        return cls(runs[1], inputs[1], step, tokens, name, activations, (of_a, of_b), (of_both[0], of_both[1]))

    def check(self, site: Site) -> Site:
        """Returns `site`, or raises an OptionError where the model has no activation there."""
        if site not in self.activations:
            raise OptionError(
                f"what all heads of layer {site.layer + 1} of {kind_words(site.kind)} add together is not known of "
                f"{self.b.model.name}; by='head' works for every model that writes"
            )
        return site

    def tap(self, chosen: Mapping[Site, Tensor]) -> Tap:
        """Patches the chosen places, bool (text, head, query) or (text, query); later rows are left as they are."""

        def put(site: Site, value: Tensor) -> Tensor:
            if site not in chosen:
                return value
            kept = self.activations[site]
            n_rows = kept.shape[-2]
            return torch.cat([torch.where(chosen[site][..., None], kept, value[..., :n_rows, :]), value[..., n_rows:, :]], -2)

        return ReplaceTap(self.name, put)

    def tap_at(self, places: Sequence[str | AttentionAddress], query: int | None) -> Tap:
        """Patches heads, or layers, at one row or at all.

        Raises:
            OptionError: there is no such place, or the model has no activation there.
        """
        model, chosen = self.b.model, dict[Site, Tensor]()
        for given in places:
            place = find(given, model.network.sizes.grid, model.name)
            if place.layer is None:
                raise OptionError(f"{place} is all layers of a kind; one is patched, as in {place}.1 or {place}.1.1")
            site = self.check(Site(place.kind, place.layer))
            kept = self.activations[site]
            if query is not None and not 0 <= query < kept.shape[-2]:
                raise OptionError(f"query={query} is not possible for {place}; it has rows 0 to {kept.shape[-2] - 1} here")
            is_chosen = chosen.setdefault(site, torch.zeros(kept.shape[:-1], dtype=torch.bool, device=kept.device))
            head = () if place.head is None else (place.head,)
            is_chosen[0, *head, slice(None) if query is None else query] = True
        return self.tap(chosen)


def _lead(logits: Tensor, tokens: Tensor) -> Tensor:
    """LD, float64 (batch,): at the last row, the first token's logit less the second's."""
    of_both = logits[:, -1, tokens].double()
    return of_both[:, 0] - of_both[:, 1]
