"""What the tab On trial computes, shared by all sessions; what takes long stands in the queue."""

from dataclasses import dataclass
from typing import Any

from transformer_viz.addresses import HeadPlace
from transformer_viz.analysis.counter_proof import CounterProof
from transformer_viz.analysis.faithfulness import KS, MeanCurve
from transformer_viz.analysis.knock_out import KnockOut
from transformer_viz.analysis.verdict import Verdicts
from transformer_viz.attribution import counter_proof as moving
from transformer_viz.attribution import knock_out as removing
from transformer_viz.attribution import verdict as judging
from transformer_viz.attribution.attribute import attribute
from transformer_viz.attribution.methods import METHODS
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode import decode
from transformer_viz.tracing.watching import OnProgress, of_part
from transformer_viz.views.cache import watched
from transformer_viz.views.cache.limits import MAX_TRACE_BYTES
from transformer_viz.views.cache.run_cache import held
from transformer_viz.views.cache.runs import Identity, identity

MOST_WRITTEN = 20
"""Tokens for each of a person's lines, of a model that may not end by itself."""
_PASSES = 4 * (2 + moving.N_HALVINGS)
"""Texts that a counter-proof reads."""


@dataclass(frozen=True)
class Texts:
    """Over which texts heads are taken away: a person's lines, so many drawn ones, or, without either, the run alone."""

    lines: tuple[str, ...] = ()
    n_drawn: int = 0


def of_run(trace: Trace) -> tuple[object, ...]:
    """What tells a run of one model from another."""
    return trace.source, trace.target_tokens, trace.target_ids, trace.output_tokens, trace.edits, trace.mistake


def verdict(model: LoadedModel, device: str, trace: Trace, kind: Kind, mode: str) -> Verdicts:
    """Of the run: every map beside the cause."""
    cost = _tokens(trace) * (len(trace.keys(kind)) + 4.0 * trace.n_steps) * model.n_parameters
    given = (identity(model, device), of_run(trace), kind, mode)
    return watched.computed(f"Taking tokens away by {mode}", _verdict, cost, *given, _model=model, _trace=trace)


def verdict_found(model: LoadedModel, device: str, trace: Trace, kind: Kind, mode: str) -> Verdicts | None:
    """The same where it is there; nothing is computed."""
    return _verdict.found(identity(model, device), of_run(trace), kind, mode, _model=model, _trace=trace)


def curves(
    model: LoadedModel, device: str, trace: Trace, kind: Kind, mode: str, maps: tuple[str, ...]
) -> tuple[MeanCurve, ...]:
    """Of the run: these maps, the cause's own order and a random one."""
    n_sets = 2.0 * len(KS) * trace.n_steps * (len(maps) + 1 + judging.N_RANDOM)
    given = (identity(model, device), of_run(trace), kind, mode, maps)
    cost = _tokens(trace) * n_sets * model.n_parameters
    return watched.computed("Taking tokens away", _curves, cost, *given, _model=model, _trace=trace)


def knock_out(model: LoadedModel, device: str, trace: Trace, texts: Texts, how: str, head: HeadPlace | None) -> KnockOut:
    """Over texts, without one head or, where none is named, without each."""
    n_texts = max(1, len(texts.lines), texts.n_drawn)
    longest = max(model.task.evaluated_lengths) if model.task is not None else max(map(len, (trace.source, *texts.lines)))
    n_heads = 1 if head else len(removing.places(model.model.sizes))
    cost = 2.0 * longest * n_texts * (2 + n_heads) * model.n_parameters
    given = _of_knock_out(model, device, trace, texts, how, head)
    return watched.computed("Taking heads away", _knock_out, cost, *given, _model=model, _trace=trace)


def knock_out_found(
    model: LoadedModel, device: str, trace: Trace, texts: Texts, how: str, head: HeadPlace | None
) -> KnockOut | None:
    """The same where it is there; nothing is computed."""
    return _knock_out.found(*_of_knock_out(model, device, trace, texts, how, head), _model=model, _trace=trace)


def counter_proof(model: LoadedModel, device: str, trace: Trace, scope: str) -> CounterProof:
    """Of the run: how far the weights of these heads can be moved."""
    cost, given = _tokens(trace) * _PASSES * model.n_parameters, (identity(model, device), of_run(trace), scope)
    return watched.computed(f"Moving the weights of {scope}", _counter_proof, cost, *given, _model=model, _trace=trace)


def _tokens(trace: Trace) -> float:
    return float(len(trace.source_tokens) + trace.n_steps)


def _of_knock_out(
    model: LoadedModel, device: str, trace: Trace, texts: Texts, how: str, head: HeadPlace | None
) -> tuple[Any, ...]:
    alone = () if texts.lines or texts.n_drawn else of_run(trace)
    return identity(model, device), alone, texts, how, head


@held
def _verdict(
    name: Identity,
    run: tuple[object, ...],
    kind: Kind,
    mode: str,
    *,
    _model: LoadedModel,
    _trace: Trace,
    _on_progress: OnProgress | None = None,
) -> Verdicts:
    return judging.verdict(_model, _trace, mode=mode, kind=kind, on_progress=_on_progress)


@held
def _curves(
    name: Identity,
    run: tuple[object, ...],
    kind: Kind,
    mode: str,
    maps: tuple[str, ...],
    *,
    _model: LoadedModel,
    _trace: Trace,
    _on_progress: OnProgress | None = None,
) -> tuple[MeanCurve, ...]:
    given = [each for each in maps if each not in METHODS or _has(_model, _trace, kind, each)]
    return judging.faithfulness(_model, _trace, given, mode=mode, kind=kind, on_progress=_on_progress)


@held
def _knock_out(
    name: Identity,
    run: tuple[object, ...],
    texts: Texts,
    how: str,
    head: HeadPlace | None,
    *,
    _model: LoadedModel,
    _trace: Trace,
    _on_progress: OnProgress | None = None,
) -> KnockOut:
    traces = _decoded(_model, _trace, texts, of_part(_on_progress, 0, 2))
    heads = None if head is None else [head]
    return removing.knock_out(_model, traces, how=how, heads=heads, on_progress=of_part(_on_progress, 1, 2))


@held
def _counter_proof(
    name: Identity,
    run: tuple[object, ...],
    scope: str,
    *,
    _model: LoadedModel,
    _trace: Trace,
    _on_progress: OnProgress | None = None,
) -> CounterProof:
    return moving.counter_proof(_model, _trace, scope=scope, on_progress=_on_progress)


def _has(model: LoadedModel, trace: Trace, kind: Kind, method: str) -> bool:
    """Whether the model can give a measure of this run."""
    try:
        attribute(model, trace, method, kind=kind)
    except OptionError:
        return False
    return True


def _decoded(model: LoadedModel, trace: Trace, texts: Texts, on_progress: OnProgress) -> list[Trace]:
    """What the model writes for each text."""
    sources = texts.lines or (judging.texts_of(model, texts.n_drawn, 0) if texts.n_drawn else ())
    found = []
    for n_done, text in enumerate(sources):
        on_progress(n_done / len(sources))
        found.append(decode(model, text, max_length=longest(model), max_trace_bytes=MAX_TRACE_BYTES))
    return found or [trace]


def longest(model: LoadedModel) -> int | None:
    """Tokens that are written for each text; None, the task's own limit."""
    return None if model.task is not None else min(MOST_WRITTEN, model.default_max_length)
