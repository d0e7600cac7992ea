"""The runs and measures that pages show: each is computed with a limit on its size, and kept for all sessions."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from transformer_viz import checkpoints
from transformer_viz.addresses import HeadAddress
from transformer_viz.analysis.word_links import gold
from transformer_viz.attribution import alignment_heads as alignment
from transformer_viz.attribution.attribute import attribute
from transformer_viz.attribution.methods import METHODS
from transformer_viz.attribution.result.alignment_heads import AlignmentHeads
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.evaluation.evaluate import sample_texts
from transformer_viz.inside_head.run import inspect_head
from transformer_viz.language import say
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.terms import Kind
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.inside import Inside
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode import decode, trace_size
from transformer_viz.tracing.progress import OnProgress
from transformer_viz.tracing.recording_options import keywords_of
from transformer_viz.tracing.untrained import decode_untrained
from transformer_viz.training import replay as runs_replay
from transformer_viz.training.result import TrainingSnapshot
from transformer_viz.views.cache import computing, limits, model_list
from transformer_viz.views.components.recorded_calls import Call, record

_MOST_ROWS = 1024
"""Tokens that a model reads and writes in one decoding, at the most."""
_PAIRS, _TOKENS = 40, 20
"""Texts over which heads are compared, and about how many tokens each makes."""


def run(model: LoadedModel, text: str, snapshot: int | None = None, **how: Any) -> Trace:
    """The decoding of a text with keywords of `decode`, greedy without any; of a checkpoint also by a snapshot of its training,
    which the Trace names."""
    return limits.within(model, lambda **kept: _decode(model, text, snapshot, **how, **kept))


def what_if(model: LoadedModel, trace: Trace, *, waits: bool = True, **change: Any) -> Trace:
    """The greedy decoding of a run's text with a forced beginning and banned tokens, or one pass over a target; as much
    is kept of it as of the run.

    Raises:
        BusyError: `waits` is False, and it is not there yet and takes a while.
    """
    return _decode(model, trace.source, waits=waits, **change, **keywords_of(trace, model.network.sizes))


def untrained(checkpoint: Checkpoint, trace: Trace) -> Trace:
    """The same tokens read by an untrained model of the same sizes."""
    return computing.compute(say("Reading with an untrained model"), 0.0, decode_untrained, checkpoint, trace)


def inside(model: LoadedModel, trace: Trace, head: HeadAddress, row: int) -> Inside:
    """Every number of one row of one head: the run's tokens are read once more, in one pass."""
    return computing.compute(say("Looking into the head"), _cost_of_pass(model, trace), inspect_head, model, trace, head, row)


def attribution(
    model: LoadedModel, trace: Trace, method: str, mode: str, kind: Kind, *, waits: bool = True
) -> Attribution | None:
    """Computes a measure of a run, by tokens; None where it is not waited for, and is not there yet and takes long."""
    # A pass for each key that is taken away, and a gradient, two passes more, for each step.
    n_passes = len(trace.labels(kind)[1]) if METHODS[method].modes else 3 * trace.n_steps if method == "gradient" else 1
    cost, how = (1 + n_passes) * _cost_of_pass(model, trace), {"mode": mode, "kind": kind}
    if not waits:
        return computing.compute_if_quick(cost, attribute, model, trace, method, **how)
    return computing.compute(
        say("Measuring: {measure}", measure=say(METHODS[method].title)), cost, attribute, model, trace, method, **how
    )


def alignment_heads(model: LoadedModel, by: str, text: str) -> AlignmentHeads:
    """Ranks heads by alignment: by the `task`, a direction of `word_links.gold`, or the `effect` on the output for `text`."""
    cost = float(_PAIRS * _TOKENS * len(alignment.cross_heads(model)) * model.n_parameters)
    return computing.compute(say("Comparing heads"), cost, _alignment_heads, model, by, text if by == "effect" else "")


def _alignment_heads(model: LoadedModel, by: str, text: str, *, on_progress: OnProgress | None = None) -> AlignmentHeads:
    texts, targets, links = [text], None, None
    if by == "task":
        texts = sample_texts(model, _PAIRS, 0)
    elif by != "effect":
        texts, targets, links = gold(by)
    return alignment.alignment_heads(model, texts, targets=targets, links=links, on_progress=on_progress)


def replay(checkpoint: Checkpoint, text: str) -> tuple[TrainingSnapshot, ...]:
    """The snapshots of a checkpoint on one text."""
    replay = partial(computing.compute, say("Going through the snapshots"), 0.0, runs_replay.trace_training, checkpoint, text)
    with st.spinner(say("Going through the snapshots …"), show_time=False):
        return limits.within(checkpoint, partial(replay, max_trace_bytes=limits.MAX_TRACE_BYTES))


def replayable() -> list[str]:
    """The checkpoints that have snapshots."""
    return runs_replay.replayable(model_list.entries())


def _decode(model: LoadedModel, text: str, snapshot: int | None = None, *, waits: bool = True, **how: Any) -> Trace:
    cost = cost_of(model, [text], **how)
    options: Any = {"max_trace_bytes": limits.MAX_TRACE_BYTES, **how}
    if snapshot is None or not isinstance(model, Checkpoint):
        return computing.decode(cost, decode, model, text, waits=waits, **options)
    trace = computing.decode(cost, _decoded_by_snapshot, model, text, snapshot=snapshot, **options)
    return record(trace, Call(decode, Call(checkpoints.load_snapshot, model, snapshot), text, **options))


def _decoded_by_snapshot(model: Checkpoint, text: str, *, snapshot: int, **options: Any) -> Trace:
    trace = decode(checkpoints.load_snapshot(model, snapshot), text, **options)
    return replace(trace, made_by={**trace.made_by, "snapshot": snapshot})


def cost_of(model: LoadedModel, texts: Sequence[str], **options: Any) -> float:
    """Multiplications that a decoding takes, at the most: for each token one with every parameter. Nothing where the page
    would refuse it as too large: that is said at once."""
    width = (options.get("beam_size") or 5) if options.get("strategy") == "beam" else 1
    if len(texts) * width * _MOST_ROWS * model.n_parameters < computing.QUICK:
        return 0.0
    if not trace_size(model, list(texts), **options).fits(limits.MAX_TRACE_BYTES):
        return 0.0
    n_read = max(len(model.tokenizer.encode_source(text)) for text in texts)
    most = options.get("max_length") or model.default_max_length
    n_written = width * most if model.network.kind.writes and "target" not in options else 0
    return len(texts) * float(n_read + n_written) * model.n_parameters


def _cost_of_pass(model: LoadedModel, trace: Trace) -> float:
    """Multiplications of one pass over a run."""
    return float(len(trace.source_tokens) + trace.n_steps) * model.n_parameters
