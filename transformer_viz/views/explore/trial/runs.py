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

_MOST_WRITTEN = 20
"""Tokens for each of a person's lines, of a model that may not end by itself."""
_PASSES = 4 * (2 + counter_proofs.N_HALVINGS)
"""Texts that a counter-proof reads."""


@dataclass(frozen=True)
class Texts:
    """The texts over which heads are ablated: a person's lines, so many drawn ones, or, without either, the run alone."""

    lines: tuple[str, ...] = ()
    n_drawn: int = 0


def verdict(model: LoadedModel, trace: Trace, kind: Kind, mode: str) -> Verdicts:
    """Every map of the run compared with occlusion."""
    cost = _tokens(trace) * (len(trace.labels(kind)[1]) + 4.0 * trace.n_steps) * model.n_parameters
    return compute(f"Taking tokens away by {mode}", cost, verdicts.verdict, model, trace, mode=mode, kind=kind)


def verdict_found(model: LoadedModel, trace: Trace, kind: Kind, mode: str) -> Verdicts | None:
    """What `verdict` returns if it was computed before, otherwise None."""
    return computed(verdicts.verdict, model, trace, mode=mode, kind=kind)


def curves(model: LoadedModel, trace: Trace, kind: Kind, mode: str, maps: tuple[str, ...]) -> tuple[MeanCurve, ...]:
    """The curves of these maps of the run, of the cause's own order and of a random one."""
    n_sets = 2.0 * len(KS) * trace.n_steps * (len(maps) + 1 + N_RANDOM)
    cost = _tokens(trace) * n_sets * model.n_parameters
    found = compute("Taking tokens away", cost, _curves, model, trace, kind, mode, maps)
    given = [curve.name for curve in found[:-2]]
    return record(found, Call(faithfulness, model, trace, given, mode=mode, kind=kind))


def _curves(
    model: LoadedModel, trace: Trace, kind: Kind, mode: str, maps: tuple[str, ...], *, on_progress: OnProgress | None = None
) -> tuple[MeanCurve, ...]:
    given = list(maps)
    for name in (name for name in maps if name in METHODS):
        try:
            attribute(model, trace, name, kind=kind)
        except OptionError:  # the model cannot give this measure
            given.remove(name)
    return faithfulness(model, trace, given, mode=mode, kind=kind, on_progress=on_progress)


def knock_out(model: LoadedModel, trace: Trace, texts: Texts, how: str, head: HeadPlace | None) -> KnockOut:
    """What the answers to the texts lose without one head or, where none is named, without each."""
    n_texts = max(1, len(texts.lines), texts.n_drawn)
    longest = max(model.task.evaluated_lengths) if model.task is not None else max(map(len, (trace.source, *texts.lines)))
    n_heads = 1 if head else len(knock_outs.all_heads(model.model.sizes))
    cost = 2.0 * longest * n_texts * (2 + n_heads) * model.n_parameters
    found = compute("Taking heads away", cost, _knock_out, model, _alone(trace, texts), texts, how, head)
    traces: list[Trace] | Call = [trace]
    if _alone(trace, texts) is None:
        lines = Call("texts = {}", [*texts.lines]) if texts.lines else Call(sample_texts, model, texts.n_drawn, 0)
        most = _longest(model)
        limit = "" if most is None else f", max_length={most}"
        traces = Call(f"traces = [tv.decode({{}}, text{limit}) for text in {{}}]", model, lines)
    heads = None if head is None else [head]
    return record(found, Call(knock_outs.knock_out, model, traces, how=how, heads=heads))


def knock_out_found(model: LoadedModel, trace: Trace, texts: Texts, how: str, head: HeadPlace | None) -> KnockOut | None:
    """What `knock_out` returns if it was computed before, otherwise None."""
    return computed(_knock_out, model, _alone(trace, texts), texts, how, head)


def _alone(trace: Trace, texts: Texts) -> Trace | None:
    """The run, where heads are ablated over it alone."""
    return None if texts.lines or texts.n_drawn else trace


def _knock_out(
    model: LoadedModel,
    trace: Trace | None,
    texts: Texts,
    how: str,
    head: HeadPlace | None,
    *,
    on_progress: OnProgress | None = None,
) -> KnockOut:
    traces = [] if trace is None else [trace]
    if trace is None:
        sources = texts.lines or sample_texts(model, texts.n_drawn, 0)
        while_decoding, most = part_of(on_progress, 0, 2), _longest(model)
        for n_done, text in enumerate(sources):
            while_decoding(n_done / len(sources))
            traces.append(decode(model, text, max_length=most, max_trace_bytes=MAX_TRACE_BYTES))
    heads = None if head is None else [head]
    return knock_outs.knock_out(model, traces, how=how, heads=heads, on_progress=part_of(on_progress, 1, 2))


def counter_proof(model: LoadedModel, trace: Trace, scope: str) -> CounterProof:
    """How far the weights of these heads can be moved in the run."""
    cost = _tokens(trace) * _PASSES * model.n_parameters
    return compute(f"Moving the weights of {scope}", cost, counter_proofs.counter_proof, model, trace, scope=scope)


def _tokens(trace: Trace) -> float:
    return float(len(trace.source_tokens) + trace.n_steps)


def _longest(model: LoadedModel) -> int | None:
    """How many tokens are written for each text at most; None stands for the task's own limit."""
    return None if model.task is not None else min(_MOST_WRITTEN, model.default_max_length)
