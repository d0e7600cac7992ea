"""Heads ablated: each alone, and one after the other as long as the answers stay.

Answers are the true ones where a task knows them, and else what the run wrote. All heads, or sets of heads, of a text are one
batch. Edits and mistakes of the runs stay in force.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from transformer_viz.addresses import HeadAddress, find_head
from transformer_viz.analysis.intervals import mean_over_texts
from transformer_viz.attribution.rerun import Run, replace_values
from transformer_viz.attribution.result.knock_out import HeadEffect, KnockOut, share_of
from transformer_viz.errors import OptionError, join_names
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.model.sizes import Sizes
from transformer_viz.model.tap import RecordTap, Site, Tap, compose
from transformer_viz.terms import INSTEAD, KINDS
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.progress import OnProgress, part_of


def knock_out(
    model: LoadedModel,
    traces: Sequence[Trace],
    *,
    how: str = "zero",
    heads: str | HeadAddress | Sequence[str | HeadAddress] | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> KnockOut:
    """Ablates each head of a model alone, and measures what its runs lose.

    Args:
        model: the model that made the runs.
        traces: a list of its runs.
        how: what replaces a head's output: `zero`, its `mean` over all texts, or that of `uniform` attention.
        heads: the head to ablate, such as `cross.2.3`, or a list of them, each alone; by default every one.
        seed: of the resampling of texts.
        on_progress: is called before each part with the share that is done, from 0 to 1; what it raises ends the work.

    Returns:
        The effect of each head, `at("cross.2.3")`: `log_p`, the change of the answer's log-probability in nats a token, below 0
        where it is lost; `exact`, the share of texts whose answer is still written. `print` makes a table.

    Raises:
        OptionError: an impossible argument, one run instead of a list, or a run of another model.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> trace = tv.decode(model, "hello")
        >>> found = tv.knock_out(model, [trace], heads=["cross.1.1", "cross.2.2"])
        >>> found.at("cross.1.1").log_p.value < 0  # nats a token
        True

    References:
        Michel, Levy & Neubig (2019), "Are Sixteen Heads Really Better than One?": https://arxiv.org/abs/1905.10650
        Voita et al. (2019), "Analyzing Multi-Head Self-Attention": https://arxiv.org/abs/1905.09418
    """
    sizes = model.network.sizes
    heads = [heads] if isinstance(heads, str | HeadAddress) else heads
    chosen = all_heads(sizes) if heads is None else tuple(find_head(head, sizes.grid, model.name) for head in heads)
    with devices.running(model):
        changes, is_exact = _Texts.of(model, traces, how).without([(), *((place,) for place in chosen)], on_progress)
    before = is_exact[:, 0]
    return KnockOut(
        how=how,
        n_texts=len(traces),
        n_known=sum(trace.expected_tokens is not None for trace in traces),
        exact_before=share_of(before),
        heads=tuple(
            HeadEffect(
                place,
                log_p=mean_over_texts([change[i] for change in changes], seed),
                exact=share_of(is_exact[:, i]),
                stays=share_of(is_exact[before, i]),
            )
            for i, place in enumerate(chosen, 1)
        ),
    )


def remove_heads(
    model: LoadedModel, traces: Sequence[Trace], *, how: str = "zero", least: float = 1.0
) -> tuple[tuple[HeadAddress, ...], tuple[HeadAddress, ...]]:
    """Removes heads one after the other, each time the one without which most answers stay, then the most probable ones.

    Args:
        model: the model that made the runs.
        traces: the runs.
        how: as in `knock_out`.
        least: the share of the answers that were right that must stay.

    Returns:
        The removed heads in that order, and the heads that are left, which suffice. None of those can be spared alone, but
        another, smaller set may suffice too.
    """
    left, gone = list(all_heads(model.network.sizes)), list[HeadAddress]()
    with devices.running(model):
        texts = _Texts.of(model, traces, how)
        enough = least * texts.without([()])[1].mean() - 1e-9
        while left:
            changes, is_exact = texts.without([(*gone, place) for place in left])
            ranks = list(zip(is_exact.mean(0), np.concatenate(changes, 1).mean(1), strict=True))
            best = max(range(len(left)), key=ranks.__getitem__)
            if ranks[best][0] < enough:
                break
            gone.append(left.pop(best))
    return tuple(gone), tuple(left)


def all_heads(sizes: Sizes) -> tuple[HeadAddress, ...]:
    """Every head of a model."""
    return tuple(
        HeadAddress(kind, layer, head)
        for kind in KINDS
        for layer in sizes.layers.get(kind, ())
        for head in range(sizes.heads[kind])
    )


def uniform(weights: Tensor, allowed: Tensor) -> Tensor:
    """Uniform attention over the allowed keys, (…, query, key); zeros in rows without one."""
    return allowed.to(weights.dtype) / allowed.sum(-1, keepdim=True).clamp_min(1)


@dataclass(frozen=True)
class _Texts:
    """Runs whose outputs are replaced by their answers.

    Attributes:
        runs: each with its answer.
        how: heads are ablated.
        means: where `how` is `mean`: of each attention (head, 1, d_v), the mean output over all rows that are no padding.
    """

    runs: tuple[Run, ...]
    how: str
    means: Mapping[Site, Tensor]

    @classmethod
    def of(cls, model: LoadedModel, traces: Sequence[Trace], how: str) -> "_Texts":
        if how not in INSTEAD:
            raise OptionError(f"how={how!r} is not known; choose one of {join_names(INSTEAD)}")
        if isinstance(traces, Trace) or not traces:
            raise OptionError("heads are ablated over a list of one or more runs")
        runs = []
        for run in (Run.of(model, trace) for trace in traces):
            tokens, start = run.trace.expected_tokens, model.network.start_id
            if tokens is not None and model.task is not None and start is not None:
                written = torch.tensor(model.task.target_vocabulary.encode(tokens), device=run.written.device)
                target = torch.cat([written.new_tensor([start]), written[:-1]])[None]
                run = replace(run, inputs=replace(run.inputs.with_target(target), written=written[None]))
            runs.append(run)
        sums: dict[Site, Tensor] = {}
        counts: Counter[Site] = Counter()
        for run in runs if how == "mean" else ():
            keep = RecordTap("heads")
            run.logits(run.inputs, keep)
            for site, kept in keep.kept.items():
                real = ~run.padding(site.kind)
                sums[site] = sums.get(site, 0.0) + kept["heads"][0, :, real].sum(1, keepdim=True)
                counts[site] += int(real.sum())
        return cls(tuple(runs), how, {site: total / counts[site] for site, total in sums.items()})

    def without(
        self, sets: Sequence[Sequence[HeadAddress]], on_progress: OnProgress | None = None
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Runs all texts without each of these sets of heads.

        Returns:
            Of each text (set, step), how much the log-probability of each token of the answer changes, in nats; and bool
            (text, set), whether greedy decoding still writes the answer.
        """
        sizes, device = self.runs[0].model.network.sizes, self.runs[0].written.device
        gone = {
            Site(kind, layer): torch.zeros(len(sets), sizes.heads[kind], dtype=torch.bool, device=device)
            for kind in sizes.kinds
            for layer in sizes.layers[kind]
        }
        for i, heads in enumerate(sets):
            for place in heads:
                gone[Site(place.kind, place.layer)][i, place.head] = True

        def ablation(part: slice) -> Tap | None:
            """Ablates heads in some texts: of each attention bool (text, head), True = gone."""
            some = {site: those[part] for site, those in gone.items()}
            if self.how == "zero":
                return replace_values("heads", some, lambda site, heads: torch.zeros_like(heads[:1]))
            if self.how == "mean":
                return replace_values("heads", some, lambda site, heads: self.means[site])
            keep = RecordTap("mask")
            to_uniform = replace_values("weights", some, lambda site, weights: uniform(weights, ~keep.kept[site]["mask"]))
            return compose(keep, to_uniform)

        changes, is_exact = list[np.ndarray](), list[np.ndarray]()
        for n_done, run in enumerate(self.runs):
            progress = part_of(on_progress, n_done, len(self.runs))
            log_p, is_first = list[Tensor](), list[Tensor]()
            # Where greedy decoding would write the answer's token at every step, it writes the answer: each step then reads
            # what it has read here.
            for _, logits in run.passes(run.inputs.repeated(len(sets)), ablation, progress):
                log_p.append(logits.log_softmax(-1)[:, torch.arange(len(run.written)), run.written].cpu())
                is_first.append((logits.argmax(-1) == run.written).cpu())
            own = run.inputs.output_rows(0)
            changes.append((torch.cat(log_p) - run.log_p)[:, own].numpy())
            is_exact.append(torch.cat(is_first)[:, own].all(1).numpy())
        return changes, np.array(is_exact)
