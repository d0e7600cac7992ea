"""Runs are asked for causes, and their maps judged by them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import torch

from transformer_viz.analysis import faithfulness as curves
from transformer_viz.analysis import verdict as judging
from transformer_viz.analysis.faithfulness import KS, Curve, MeanCurve
from transformer_viz.analysis.verdict import Verdict, Verdicts
from transformer_viz.attribution.attribute import attribute
from transformer_viz.attribution.methods import METHODS
from transformer_viz.attribution.run import Run
from transformer_viz.attribution.without import log_p_without
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.progress import OnProgress, of_part

CAUSE = "occlusion"
N_RANDOM = 5
"""Random rankings of each step, whose mean is the baseline."""
# Keeps the texts apart from those of training, of `evaluate` and of `effect`.
_STREAM = 79


def verdict(
    reader: LoadedModel,
    traces: Trace | Sequence[Trace],
    *,
    mode: str = "word",
    kind: str | None = None,
    methods: Iterable[str] | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Verdicts:
    """Whether the maps of runs point where the cause is.

    Args:
        reader: the model that made the runs.
        traces: one run, or several; then there are intervals, which resample the texts.
        mode: how a token is taken away, as in `tv.attribute`.
        kind: whose keys, likewise.
        methods: what is judged beside the weights of the heads; by default every measure that the model can give.
        seed: of the resampling.
        on_progress: is called before each part with the share that is done, from 0 to 1; what it raises ends the work.

    Raises:
        OptionError: no runs, or as `tv.attribute`.
    """
    runs, others = _runs(traces), [name for name in (METHODS if methods is None else methods) if name != CAUSE]
    missing: dict[str, str] = {}
    found = []
    for n_done, trace in enumerate(runs):
        say = of_part(on_progress, n_done, len(runs))
        found.append(of_run(reader, trace, others, missing, mode=mode, kind=kind, on_progress=say))
    return judging.over(found, missing, seed=seed)


def of_run(
    reader: LoadedModel,
    trace: Trace,
    methods: Sequence[str],
    missing: dict[str, str],
    *,
    mode: str = "word",
    kind: str | None = None,
    on_progress: OnProgress | None = None,
) -> Verdict:
    """The verdict of a single run; what the model cannot give of `methods` is told to `missing`. The others as in `verdict`."""
    of_cause = of_part(on_progress, 0, 1 + len(methods))
    of_cause(0)
    cause = attribute(reader, trace, CAUSE, mode=mode, kind=kind, on_progress=of_cause)
    return judging.verdict(trace, cause, _others(reader, trace, cause, methods, missing, on_progress))


def faithfulness(
    reader: LoadedModel,
    traces: Trace | Sequence[Trace],
    maps: Sequence[str],
    *,
    mode: str = "word",
    kind: str | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> tuple[MeanCurve, ...]:
    """How much probability is lost without the keys that maps put first, or with them alone.

    Args:
        reader: the model that made the runs.
        traces: one run, or several.
        maps: by their names in `tv.verdict`, such as `L2 H1`, `L1 mean` or `rollout`.
        mode: how tokens are taken away.
        kind: whose keys.
        seed: of the random ranking, and of the resampling.
        on_progress: is called before each part with the share that is done, from 0 to 1; what it raises ends the work.

    Returns:
        A curve for each map, then for the cause's own order and for a random one.

    Raises:
        OptionError: an unknown map, or as `tv.attribute`.
    """
    runs, found = _runs(traces), []
    methods = [name for name in METHODS if name != CAUSE and any(each.split(" ")[0] == name for each in maps)]
    for n_done, trace in enumerate(runs):
        cause = attribute(reader, trace, CAUSE, mode=mode, kind=kind)
        there = judging.maps_of(trace, cause.kind, _others(reader, trace, cause, methods))
        if unknown := [name for name in maps if name not in there]:
            raise OptionError(f"there is no map {unknown[0]!r}; L1 H1, L1 mean or rollout are such names")
        rankings = {name: there[name] for name in maps} | {CAUSE: cause.values}
        found.append(_curves(reader, trace, cause, rankings, seed, of_part(on_progress, n_done, len(runs))))
    return curves.over(found, seed=seed)


def texts_of(model: LoadedModel, samples: int, seed: int) -> list[str]:
    """So many fresh texts of a model's task, of all lengths and sources alike."""
    assert model.task is not None
    rng = np.random.default_rng([seed, _STREAM])
    return model.task.mixed(rng.choice(model.task.evaluated_lengths, samples).tolist(), rng)


def _runs(traces: Trace | Sequence[Trace]) -> list[Trace]:
    runs = [traces] if isinstance(traces, Trace) else list(traces)
    if not runs:
        raise OptionError("a verdict needs at least one run")
    return runs


def _others(
    reader: LoadedModel,
    trace: Trace,
    cause: Attribution,
    methods: Sequence[str],
    missing: dict[str, str] | None = None,
    on_progress: OnProgress | None = None,
) -> list[Attribution]:
    """Other measures of the same keys; what the model cannot give is told to `missing`, or refused where there is None."""
    found = []
    for n_done, method in enumerate(methods, 1):
        say = of_part(on_progress, n_done, 1 + len(methods))
        say(0)
        try:
            found.append(attribute(reader, trace, method, kind=cause.kind, on_progress=say))
        except OptionError as error:
            if missing is None or method not in METHODS:
                raise
            missing[method] = str(error)
    return found


def _curves(
    reader: LoadedModel,
    trace: Trace,
    cause: Attribution,
    rankings: Mapping[str, np.ndarray],
    seed: int,
    on_progress: OnProgress,
) -> dict[str, Curve]:
    steps, _, _ = judging.judged_steps(trace, cause)
    if not len(steps):
        nothing = Curve(*np.empty((2, len(KS), 0)))
        return dict.fromkeys((*rankings, "random"), nothing)
    rng, keys = np.random.default_rng(seed), judging.content_keys(trace, cause.kind)
    drawn = {f"{i}": rng.random(cause.values.shape) for i in range(N_RANDOM)}
    whole = {**rankings, **drawn}
    sets = list(_sets(whole.values(), steps, keys))
    with devices.running(reader):
        run = Run.of(reader, trace)
        p = torch.exp(run.log_p).numpy()
        assert cause.mode is not None
        # Many sets are alike: what several maps put first is the same key.
        distinct, place = np.unique(np.array(sets).reshape(len(sets), -1), axis=0, return_inverse=True)
        found = []
        for part in run.parts(run.read.repeated(len(distinct))):
            on_progress(part.start / len(distinct))
            found.append(log_p_without(run, cause.kind, torch.from_numpy(distinct[part]), cause.mode))
        without = torch.exp(torch.cat(found)).numpy()[place.ravel()]
    shape = (len(whole), len(KS), 2, len(steps))
    at = np.broadcast_to(np.arange(len(steps)), shape).ravel()
    lost = (p[steps][at] - without[np.arange(len(at)), steps[at]]).reshape(shape)
    curves_of = {name: Curve(lost[i, :, 0], lost[i, :, 1]) for i, name in enumerate(rankings)}
    at_random = lost[len(rankings) :].mean(0)
    return curves_of | {"random": Curve(at_random[:, 0], at_random[:, 1])}


def _sets(rankings: Iterable[np.ndarray], steps: np.ndarray, keys: np.ndarray) -> Iterator[np.ndarray]:
    """What is taken away: for each ranking and k the first of each step, then all content but the first."""
    for ranking in rankings:
        for k in KS:
            first = [curves.first_keys(ranking[t], keys[t], k) for t in steps]
            yield from first
            yield from (keys[t] & ~each for t, each in zip(steps, first, strict=True))
