"""`judge_attention` occludes tokens of runs to find the cause, and compares it with the maps of the runs.

`faithfulness` reads the runs again without the keys that a map puts first, and with these alone.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch

from transformer_viz.addresses import HeadAddress
from transformer_viz.analysis.intervals import Mean, mean_over_texts
from transformer_viz.attribution.attribute import attribute
from transformer_viz.attribution.methods import METHODS
from transformer_viz.attribution.methods.occlusion import log_p_without
from transformer_viz.attribution.rerun import Run
from transformer_viz.attribution.result import verdict as result
from transformer_viz.attribution.result.verdict import (
    KS,
    MeanCurve,
    Verdict,
    Verdicts,
    content_keys,
    first_keys,
    judged_steps,
    map_label,
    maps_of,
)
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.progress import OnProgress, part_of

CAUSE = "occlusion"


def judge_attention(
    model: LoadedModel,
    traces: Trace | Sequence[Trace],
    *,
    mode: str = "word",
    kind: str | None = None,
    methods: Iterable[str] | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Verdicts:
    """Measures whether the maps of runs point at the cause, which occlusion finds.

    Args:
        model: the model that made the runs.
        traces: one run, or several; then there are intervals, which resample the texts.
        mode: how a token is occluded, as in `tv.attribute`.
        kind: whose keys, as in `tv.attribute`.
        methods: measures that are judged beside the weights of heads; by default every one that the model allows.
        seed: of the resampling.
        on_progress: is called before each part with the share that is done, from 0 to 1; what it raises ends the work.

    Returns:
        How often each map points at the cause, beside chance: `at("cross.2.3")`, and a table by `print`.

    Raises:
        OptionError: no runs, or as `tv.attribute`.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> trace = tv.decode(model, "hello")
        >>> found = tv.judge_attention(model, trace, methods=["rollout"])
        >>> found.n_judged  # steps
        6
        >>> found.at("cross.2.2").top.value > found.chance.value
        True

    References:
        Jain & Wallace (2019), "Attention is not Explanation": https://arxiv.org/abs/1902.10186
        Wiegreffe & Pinter (2019), "Attention is not not Explanation": https://arxiv.org/abs/1908.04626
    """
    runs, others = list_runs(traces), [name for name in (METHODS if methods is None else methods) if name != CAUSE]
    missing: dict[str, str] = {}
    verdicts = []
    for n_done, trace in enumerate(runs):
        report = part_of(on_progress, n_done, len(runs))
        verdicts.append(judge_run(model, trace, others, missing, mode=mode, kind=kind, on_progress=report))
    return result.merge_verdicts(verdicts, missing, seed=seed)


def judge_run(
    model: LoadedModel,
    trace: Trace,
    methods: Sequence[str],
    missing: dict[str, str],
    *,
    mode: str = "word",
    kind: str | None = None,
    on_progress: OnProgress | None = None,
) -> Verdict:
    """Judges one run, with the arguments of `judge_attention`; measures that the model does not allow go into `missing`."""
    of_cause = part_of(on_progress, 0, 1 + len(methods))
    of_cause(0)
    cause = attribute(model, trace, CAUSE, mode=mode, kind=kind, on_progress=of_cause)
    return result.judge_maps(trace, cause, other_attributions(model, trace, cause, methods, missing, on_progress))


def other_attributions(
    model: LoadedModel,
    trace: Trace,
    cause: Attribution,
    methods: Sequence[str],
    missing: dict[str, str] | None = None,
    on_progress: OnProgress | None = None,
) -> list[Attribution]:
    """Computes other measures of the same keys. One that the model does not allow is added to `missing`; without `missing` its
    error is raised."""
    results = []
    for n_done, method in enumerate(methods, 1):
        report = part_of(on_progress, n_done, 1 + len(methods))
        report(0)
        try:
            results.append(attribute(model, trace, method, kind=cause.kind, on_progress=report))
        except OptionError as error:
            if missing is None or method not in METHODS:
                raise
            missing[method] = str(error)
    return results


def list_runs(traces: Trace | Sequence[Trace]) -> list[Trace]:
    """One run or several as a list; an OptionError where there is none."""
    runs = [traces] if isinstance(traces, Trace) else list(traces)
    if not runs:
        raise OptionError("a verdict needs at least one run")
    return runs


N_RANDOM = 5
"""Random rankings of each step, whose mean is the baseline."""


def faithfulness(
    model: LoadedModel,
    traces: Trace | Sequence[Trace],
    maps: str | HeadAddress | Sequence[str | HeadAddress],
    *,
    mode: str = "word",
    kind: str | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> tuple[MeanCurve, ...]:
    """Measures how much probability is lost without the k highest keys of each map, and with these keys alone.

    Args:
        model: the model that made the runs.
        traces: one run, or several.
        maps: a list of heads (`cross.2.1`), all heads of a layer (`cross.1.mean`), or measures (`rollout`); of a measure with
            heads `value_weighted cross.2.1`. One alone needs no list.
        mode: how tokens are occluded, as in `tv.attribute`.
        kind: whose keys, as in `tv.attribute`.
        seed: of the random ranking, and of the resampling.
        on_progress: is called before each part with the share that is done, from 0 to 1; what it raises ends the work.

    Returns:
        A curve for each map, then for the cause's own order and for a random one. Each has `comprehensiveness`, the probability
        of what was written that is lost without the first 1, 2, 3 and 5 keys, and `sufficiency`, what is lost with these keys
        alone. `print` makes a table of one, `tv.figures.faithfulness` draws all.

    Raises:
        OptionError: an unknown map, or as `tv.attribute`.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> trace = tv.decode(model, "hello")
        >>> *_, cause, chance = tv.faithfulness(model, trace, ["cross.2.2", "cross.1.mean"])
        >>> cause.name, chance.name
        ('occlusion', 'random')
        >>> cause.comprehensiveness[0].value > chance.comprehensiveness[0].value  # without the first key
        True

    References:
        DeYoung et al. (2020), "ERASER: A Benchmark to Evaluate Rationalized NLP Models":
            https://arxiv.org/abs/1911.03429
    """
    runs, curves = list_runs(traces), []
    maps = [maps] if isinstance(maps, str | HeadAddress) else maps
    methods = [method for method in METHODS if method != CAUSE and any(str(name).split(" ")[0] == method for name in maps)]
    for n_done, trace in enumerate(runs):
        cause = attribute(model, trace, CAUSE, mode=mode, kind=kind)
        all_maps = maps_of(trace, cause.kind, other_attributions(model, trace, cause, methods))
        labels = [map_label(name, cause.kind) for name in maps]
        if unknown := [label for label in labels if label not in all_maps]:
            raise OptionError(
                f"there is no map {unknown[0]!r}; write a head as {cause.kind}.1.1, all heads of a layer as "
                f"{cause.kind}.1.mean, and a measure as rollout"
            )
        rankings = {label: all_maps[label] for label in labels} | {CAUSE: cause.values}
        curves.append(_curves(model, trace, cause, rankings, seed, part_of(on_progress, n_done, len(runs))))

    def means(name: str, side: int) -> tuple[Mean, ...]:
        return tuple(mean_over_texts([lost[name][k, side] for lost in curves], seed) for k in range(len(KS)))

    return tuple(MeanCurve(name, means(name, 0), means(name, 1)) for name in curves[0])


def _curves(
    model: LoadedModel,
    trace: Trace,
    cause: Attribution,
    rankings: Mapping[str, np.ndarray],
    seed: int,
    on_progress: OnProgress,
) -> dict[str, np.ndarray]:
    """The probability lost in one run, float64 (k, 2, step) of each ranking and of a random one.

    Without the first k keys (comprehensiveness), and with them alone (sufficiency).
    """
    steps, _, _ = judged_steps(trace, cause)
    if not len(steps):
        return dict.fromkeys((*rankings, "random"), np.empty((len(KS), 2, 0)))
    rng, keys = np.random.default_rng(seed), content_keys(trace, cause.kind)
    every = [*rankings.values(), *(rng.random(cause.values.shape) for _ in range(N_RANDOM))]
    # For each ranking and k two sets of keys to remove: the first k of each step, then all content keys but these.
    sets = []
    for ranking in every:
        for k in KS:
            first = [first_keys(ranking[t], keys[t], k) for t in steps]
            sets += [*first, *(keys[t] & ~those for t, those in zip(steps, first, strict=True))]
    # Many sets are equal, since several maps put the same key first; each is read once.
    distinct, place = np.unique(np.array(sets), axis=0, return_inverse=True)
    with devices.running(model):
        run = Run.of(model, trace)
        p = torch.exp(run.log_p).numpy()
        assert cause.mode is not None
        log_p = []
        for part in run.parts(run.inputs.repeated(len(distinct))):
            on_progress(part.start / len(distinct))
            log_p.append(log_p_without(run, cause.kind, torch.from_numpy(distinct[part]), cause.mode))
        without = torch.exp(torch.cat(log_p)).numpy()[place.ravel()]
    shape = (len(every), len(KS), 2, len(steps))
    at = np.broadcast_to(np.arange(len(steps)), shape).ravel()
    lost = (p[steps][at] - without[np.arange(len(at)), steps[at]]).reshape(shape)
    return {**dict(zip(rankings, lost, strict=False)), "random": lost[len(rankings) :].mean(0)}
