"""`verdict`: occludes tokens of runs to find the cause, and compares it with the maps of the runs."""

from collections.abc import Iterable, Sequence

from transformer_viz.attribution.attribute import attribute
from transformer_viz.attribution.methods import METHODS
from transformer_viz.attribution.result import verdict as result
from transformer_viz.attribution.result.verdict import Verdict, Verdicts
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.progress import OnProgress, part_of

CAUSE = "occlusion"


def verdict(
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

    Raises:
        OptionError: no runs, or as `tv.attribute`.
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
    """The verdict of one run, with the arguments of `verdict`; measures that the model does not allow go into `missing`."""
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
