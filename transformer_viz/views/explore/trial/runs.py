"""The computations of On trial: shared by all sessions, and queued where they take long."""

from dataclasses import dataclass

from transformer_viz.addresses import HeadPlace
from transformer_viz.attribution import counter_proof as counter_proofs
from transformer_viz.attribution import knock_out as knock_outs
from transformer_viz.attribution import verdict as verdicts
from transformer_viz.attribution.attribute import attribute
from transformer_viz.attribution.faithfulness import N_RANDOM, faithfulness
from transformer_viz.attribution.methods import METHODS
from transformer_viz.attribution.result.counter_proof import CounterProof
from transformer_viz.attribution.result.faithfulness import KS, MeanCurve
from transformer_viz.attribution.result.knock_out import KnockOut
from transformer_viz.attribution.result.verdict import Verdicts
from transformer_viz.errors import OptionError
from transformer_viz.evaluation.sample_texts import sample_texts
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode import decode
from transformer_viz.tracing.progress import OnProgress, part_of
from transformer_viz.views.cache.computing import compute, computed
from transformer_viz.views.cache.limits import MAX_TRACE_BYTES
from transformer_viz.views.components.recorded_calls import Call, record

MOST_WRITTEN = 20
"""Tokens for each of a person's lines, of a model that may not end by itself."""
_PASSES = 4 * (2 + counter_proofs.N_HALVINGS)
"""Texts that a counter-proof reads."""


@dataclass(frozen=True)
class Texts:
    """over which texts heads are ablated: a person's lines, so many drawn ones, or, without either, the run alone."""

    lines: tuple[str, ...] = ()
    n_drawn: int = 0


def verdict(model: LoadedModel, trace: Trace, kind: Kind, mode: str) -> Verdicts:
    """Of the run: every map beside the cause."""
    cost = _tokens(trace) * (len(trace.labels(kind)[1]) + 4.0 * trace.n_steps) * model.n_parameters
    return compute(f"Taking tokens away by {mode}", cost, verdicts.verdict, model, trace, mode=mode, kind=kind)


def verdict_found(model: LoadedModel, trace: Trace, kind: Kind, mode: str) -> Verdicts | None:
    """The verdicts if they were computed before, otherwise None."""
    return computed(verdicts.verdict, model, trace, mode=mode, kind=kind)


def curves(model: LoadedModel, trace: Trace, kind: Kind, mode: str, maps: tuple[str, ...]) -> tuple[MeanCurve, ...]:
    """Of the run: these maps, the cause's own order and a random one."""
    n_sets = 2.0 * len(KS) * trace.n_steps * (len(maps) + 1 + N_RANDOM)
    cost = _tokens(trace) * n_sets * model.n_parameters
    found = compute("Taking tokens away", cost, _curves, model, trace, kind, mode, maps)
    given = [curve.name for curve in found[:-2]]
    return record(found, Call(faithfulness, model, trace, given, mode=mode, kind=kind))


def knock_out(model: LoadedModel, trace: Trace, texts: Texts, how: str, head: HeadPlace | None) -> KnockOut:
    """Over texts, without one head or, where none is named, without each."""
    n_texts = max(1, len(texts.lines), texts.n_drawn)
    longest = max(model.task.evaluated_lengths) if model.task is not None else max(map(len, (trace.source, *texts.lines)))
    n_heads = 1 if head else len(knock_outs.all_heads(model.model.sizes))
    cost = 2.0 * longest * n_texts * (2 + n_heads) * model.n_parameters
    found = compute("Taking heads away", cost, _knock_out, model, _alone(trace, texts), texts, how, head)
    heads = None if head is None else [head]
    return record(found, Call(knock_outs.knock_out, model, _traces(model, trace, texts), how=how, heads=heads))


def _traces(model: LoadedModel, trace: Trace, texts: Texts) -> list[Trace] | Call:
    """What heads are ablated over, for “Show the code”."""
    if _alone(trace, texts) is not None:
        return [trace]
    lines = Call("texts = {}", [*texts.lines]) if texts.lines else Call(sample_texts, model, texts.n_drawn, 0)
    if (most := longest(model)) is None:
        return Call("traces = [tv.decode({}, text) for text in {}]", model, lines)
    return Call("traces = [tv.decode({}, text, max_length={}) for text in {}]", model, most, lines)


def knock_out_found(model: LoadedModel, trace: Trace, texts: Texts, how: str, head: HeadPlace | None) -> KnockOut | None:
    """The knock-out if it was computed before, otherwise None."""
    return computed(_knock_out, model, _alone(trace, texts), texts, how, head)


def counter_proof(model: LoadedModel, trace: Trace, scope: str) -> CounterProof:
    """Of the run: how far the weights of these heads can be moved."""
    cost = _tokens(trace) * _PASSES * model.n_parameters
    return compute(f"Moving the weights of {scope}", cost, counter_proofs.counter_proof, model, trace, scope=scope)


def _tokens(trace: Trace) -> float:
    return float(len(trace.source_tokens) + trace.n_steps)


def _alone(trace: Trace, texts: Texts) -> Trace | None:
    """The run, where heads are ablated over it alone."""
    return None if texts.lines or texts.n_drawn else trace


def _curves(
    model: LoadedModel, trace: Trace, kind: Kind, mode: str, maps: tuple[str, ...], *, on_progress: OnProgress | None = None
) -> tuple[MeanCurve, ...]:
    given = [name for name in maps if name not in METHODS or _has(model, trace, kind, name)]
    return faithfulness(model, trace, given, mode=mode, kind=kind, on_progress=on_progress)


def _knock_out(
    model: LoadedModel,
    trace: Trace | None,
    texts: Texts,
    how: str,
    head: HeadPlace | None,
    *,
    on_progress: OnProgress | None = None,
) -> KnockOut:
    traces = [trace] if trace is not None else _decoded(model, texts, part_of(on_progress, 0, 2))
    heads = None if head is None else [head]
    return knock_outs.knock_out(model, traces, how=how, heads=heads, on_progress=part_of(on_progress, 1, 2))


def _has(model: LoadedModel, trace: Trace, kind: Kind, method: str) -> bool:
    """Whether the model can give a measure of this run."""
    try:
        attribute(model, trace, method, kind=kind)
    except OptionError:
        return False
    return True


def _decoded(model: LoadedModel, texts: Texts, on_progress: OnProgress) -> list[Trace]:
    """What the model writes for each text."""
    sources = texts.lines or sample_texts(model, texts.n_drawn, 0)
    traces = []
    for n_done, text in enumerate(sources):
        on_progress(n_done / len(sources))
        traces.append(decode(model, text, max_length=longest(model), max_trace_bytes=MAX_TRACE_BYTES))
    return traces


def longest(model: LoadedModel) -> int | None:
    """Tokens that are written for each text; None, the task's own limit."""
    return None if model.task is not None else min(MOST_WRITTEN, model.default_max_length)
