"""The counter-proof: how far weights can be moved without the output noticing (after Jain & Wallace 2019).

The weights A of some heads are moved towards others, B: (1 − λ)A + λB, in all rows at once. Bisection looks for the largest λ
that changes no output probability by more than ε; since probabilities need not be monotone in λ, a larger one may exist. Edits
and mistakes of the run stay in force, and masked keys get no weight.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from transformer_viz.addresses import AttentionAddress, HeadAddress, find
from transformer_viz.attribution.knock_out import all_heads, uniform
from transformer_viz.attribution.rerun import Run, replace_values
from transformer_viz.attribution.result.counter_proof import CounterProof, MovedWeights
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.model.tap import RecordTap, Site, Tap
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.progress import OnProgress

EPSILON = 0.01
N_HALVINGS = 12
"""They fix λ to 1/4096."""


def counter_proof(
    model: LoadedModel,
    trace: Trace,
    *,
    scope: str | AttentionAddress,
    epsilon: float = EPSILON,
    on_progress: OnProgress | None = None,
) -> CounterProof:
    """Moves the weights of some heads as far away as possible without changing an output probability by more than `epsilon`.

    Args:
        model: the model that made the run.
        trace: the run.
        scope: a head (`cross.2.3`), a layer (`cross.2`) or all heads of a kind (`cross`), which are moved together.
        epsilon: the most by which an output probability may change in a pass over the run's tokens.
        on_progress: is called before each halving with the share that is done, from 0 to 1; what it raises ends the work.

    Returns:
        How far the weights were moved towards each target; `words` is a sentence.

    Raises:
        OptionError: an impossible argument, a run of another model, or one in which each step was a pass of its own.
        DeviceError: the device ran out of memory.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> trace = tv.decode(model, "hello")
        >>> proof = tv.counter_proof(model, trace, scope="cross.1.1")
        >>> proof.farthest.change <= proof.epsilon
        True
        >>> proof.of("cross.1.1").shape  # (query, key)
        (6, 7)

    References:
        Jain & Wallace (2019), "Attention is not Explanation": https://arxiv.org/abs/1902.10186
        Wiegreffe & Pinter (2019), "Attention is not not Explanation": https://arxiv.org/abs/1908.04626
    """
    heads = _heads(model, scope)
    if not 0 < epsilon < 1:
        raise OptionError(f"epsilon={epsilon!r} is not possible; it is a change of probability above 0 and below 1")
    with devices.running(model):
        run = Run.of(model, trace)
        run.check_one_pass("no pass over all rows has its weights")
        is_real = ~run.padding("decoder")
        before = run.logits(run.inputs)[0].double().softmax(-1)
        if not bool(before[is_real].isfinite().all()):
            raise OptionError(
                "a mistake makes the probabilities of this run NaN, so no change can be measured; take a run without it"
            )
        # A scope is whole layers, or one head of one; all weights of it are (layer, head, query, key).
        sites = [Site(heads[0].kind, layer) for layer in sorted({head.layer for head in heads})]
        numbers = sorted({head.head for head in heads})
        keep = RecordTap("mask", "weights")
        run.logits(run.inputs, keep)
        weights = torch.stack([keep.kept[site]["weights"][0, numbers] for site in sites])
        masks = [keep.kept[site]["mask"].expand_as(keep.kept[site]["weights"])[0, numbers] for site in sites]
        allowed = ~torch.stack(masks)
        targets = torch.stack([target(weights, allowed) for target in TARGETS.values()])
        # A row that may look nowhere stays as it is.
        targets = torch.where(allowed.any(-1, keepdim=True), targets, weights)
        is_moved = torch.zeros(run.model.network.sizes.heads[heads[0].kind], dtype=torch.bool, device=weights.device)
        is_moved[numbers] = True

        def moved(shares: Tensor) -> Tensor:
            """float32 (target, layer, head, query, key) from λ, (target,)."""
            share = shares.view(-1, 1, 1, 1, 1)
            return ((1 - share) * weights + share * targets).float()

        def tap_of(weights: Tensor, part: slice) -> Tap:
            instead = {site: weights[part, i] for i, site in enumerate(sites)}
            moved_heads = dict.fromkeys(sites, is_moved[None])
            return replace_values("weights", moved_heads, lambda site, as_is: instead[site].to(as_is.dtype))

        def changes(weights: Tensor) -> Tensor:
            """(target,): the greatest change of a probability at a row that is no padding."""
            passes = run.passes(run.inputs.repeated(len(weights)), partial(tap_of, weights))
            return torch.cat([(logits.softmax(-1) - before).abs()[:, is_real].amax((1, 2)) for _, logits in passes])

        # λ by bisection of all targets at once: first 1 itself, then halves.
        low = torch.zeros(len(TARGETS), dtype=torch.float64, device=weights.device)
        trial = high = torch.ones_like(low)
        for n_done in range(1 + N_HALVINGS):
            if on_progress is not None:
                on_progress(n_done / (1 + N_HALVINGS))
            unnoticed = changes(moved(trial)) <= epsilon
            low, high = torch.where(unnoticed, trial, low), torch.where(unnoticed, high, trial)
            trial = (low + high) / 2
        farthest = moved(low)
        rows = ~run.padding(heads[0].kind)
        distances = ((farthest.double() - weights.float()).abs().sum(-1)[..., rows] / 2).mean((1, 2, 3))
        columns = TARGETS, low.tolist(), farthest.cpu().numpy(), distances.tolist(), changes(farthest).tolist()
    return CounterProof(
        scope=str(scope),
        heads=heads,
        epsilon=epsilon,
        weights=weights.float().cpu().numpy(),
        moved=tuple(MovedWeights(*each) for each in zip(*columns, strict=True)),
    )


def scopes(model: LoadedModel) -> tuple[str, ...]:
    """The groups of heads that can be moved, of every kind: each head alone, each layer, all together."""
    heads = all_heads(model.network.sizes)
    layers = dict.fromkeys(f"{head.kind}.{head.layer + 1}" for head in heads)
    return (*map(str, heads), *layers, *model.network.sizes.kinds)


def _heads(model: LoadedModel, scope: str | AttentionAddress) -> tuple[HeadAddress, ...]:
    sizes = model.network.sizes
    return tuple(filter(find(scope, sizes.grid, model.name).holds, all_heads(sizes)))


def _first(weights: Tensor, allowed: Tensor) -> Tensor:
    return (allowed & (allowed.cumsum(-1) == 1)).to(weights.dtype)


def _reversed(weights: Tensor, allowed: Tensor) -> Tensor:
    """The allowed keys' weights in the opposite order, at the allowed keys."""
    first_to_last = (~allowed).to(torch.uint8).argsort(stable=True, dim=-1)
    n, place = allowed.sum(-1, keepdim=True), torch.arange(weights.shape[-1], device=weights.device)
    opposite = torch.where(place < n, n - 1 - place, place)
    return torch.zeros_like(weights).scatter(-1, first_to_last, weights.gather(-1, first_to_last.gather(-1, opposite)))


TARGETS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "uniform": uniform,
    "first key": _first,
    "last key": lambda weights, allowed: _first(weights, allowed.flip(-1)).flip(-1),
    "reversed": _reversed,
}
"""Target distributions from weights and bool, True = allowed, both (layer, head, query, key)."""
