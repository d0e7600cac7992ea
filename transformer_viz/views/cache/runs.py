"""What the pages share: loaded checkpoints and finished runs.

All caches are shared by all sessions, keyed by value, and hold things that nobody changes: models in eval mode
without gradients, and Traces. Runs are bounded by their bytes (`held`), and each by what a page allows (`limits`).
"""

import os
import random
from collections.abc import Hashable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from cachetools import TTLCache

from transformer_viz import checkpoints, places, readers, reading
from transformer_viz.analysis.alignment_heads import AlignmentHeads
from transformer_viz.analysis.length_report import ByLength
from transformer_viz.analysis.word_links import gold
from transformer_viz.attribution import alignment_heads as alignment
from transformer_viz.attribution.attribute import attribute
from transformer_viz.attribution.methods import METHODS
from transformer_viz.attribution.remembered import remembered as read_memory
from transformer_viz.attribution.verdict import texts_of
from transformer_viz.checkpoints import Checkpoint, Entry
from transformer_viz.errors import BusyError, ModelError, TransformerVizError
from transformer_viz.evaluation.by_length import accuracy_by_length, default_lengths
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.terms import Kind
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.inside import Inside
from transformer_viz.trace.remembered import Remembered
from transformer_viz.trace.snapshots import TrainingSnapshot
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing import replay as runs_replay
from transformer_viz.tracing.decode import decode, trace_size
from transformer_viz.tracing.inside import inside as look_inside
from transformer_viz.tracing.recording_options import as_in
from transformer_viz.tracing.trace_size import megabytes
from transformer_viz.tracing.untrained import untrained as untrained_run
from transformer_viz.tracing.watching import OnProgress, OnToken
from transformer_viz.views.cache import limits, model_cache, watched
from transformer_viz.views.cache.limits import Kept
from transformer_viz.views.cache.line import Run
from transformer_viz.views.cache.run_cache import held
from transformer_viz.views.cache.watched import Progress
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.state import switches

Identity = tuple[Hashable, ...]
Keywords = tuple[tuple[str, Any], ...]
"""Of `decode`, as a key."""

# Everything that a visitor can make the server keep is limited, in number or in bytes.
_CHECKPOINTS = 6
LARGE = 100_000_000
"""Bytes of a model whose loading is watched from its beginning; a smaller one is there in a moment."""
_MOST_ROWS = 1024
"""Tokens that a model reads and writes in one decoding, at the most."""
_PAIRS, _TOKENS = 40, 20
"""Texts over which heads are compared, and about how many tokens each makes."""
refused: TTLCache[Hashable, TransformerVizError] = TTLCache(_CHECKPOINTS, ttl=20)
"""What could not be loaded a moment ago: a page asks for its model more than once."""


def load(name: str, device: str) -> Checkpoint:
    """A checkpoint by name, loaded once for all sessions, and again when its files change."""
    folder = checkpoints.find_name(name)
    return _load(name, device, stamp(folder))


def load_any(name: str, device: str) -> LoadedModel:
    """Likewise, or another model by its listed name, as this session has switched it; while it is loaded the page says its
    size."""
    entry = models().get(name)
    return load(name, device) if entry is None else switches.switched(_load_model(name, device, entry))


def _load_model(name: str, device: str, entry: readers.Entry) -> LoadedModel:
    if entry.description is None:
        raise ModelError(entry.error or f"{name} cannot be loaded.")
    key = (name, device, stamp(entry.folder))
    if key in refused:
        raise refused[key]
    if (found := model_cache.found(key)) is not None:
        return found
    words, needed = f"Loading {name}: {size_words(entry)}", entry.description.memory
    late = ModelError(f"{name} was not loaded in time: a run may take {watched.limit_words()}. Take a smaller model.")
    work, is_there = partial(_read_model, key, needed, late), lambda: model_cache.found(key) is not None
    is_small = needed < LARGE
    try:
        with st.spinner(literal(words)) if is_small else nullcontext():
            return watched.loaded(("load", *key), words, work, is_there, late, is_small)
    except BusyError:
        raise
    except TransformerVizError as error:
        refused[key] = error
        raise


def _read_model(key: tuple[str, str, float], needed: int, late: ModelError, run: Run) -> LoadedModel:
    name, device, _ = key

    def say(words: str, share: float | None) -> None:
        if not run.goes_on(Progress(words, share)):
            raise late

    return model_cache.held(key, needed, lambda: readers.load_named(name, device, say))


def is_to_be_loaded(name: str, device: str) -> bool:
    """Whether it takes a while until `load_any` has this model, and the page ends with how far it is."""
    entry = models().get(name)
    if entry is None or entry.description is None or entry.description.memory < LARGE:
        return False
    key = (name, device, stamp(entry.folder))
    return key not in refused and model_cache.found(key) is None


def size_words(entry: readers.Entry) -> str:
    """`135 M parameters, 0.5 GB`; nothing for a checkpoint."""
    if entry.description is None:
        return ""
    return f"{_in_millions(entry.description.n_parameters)} parameters, {megabytes(entry.description.memory)}"


def _in_millions(n: int) -> str:
    return f"{n / 1e9:.1f} B" if n >= 999_500_000 else f"{n / 1e6:.0f} M" if n >= 9_500_000 else f"{n / 1e6:.2g} M"


def identity(model: LoadedModel, device: str) -> Identity:
    """What tells a model from all others, and from itself with other files or switched otherwise: what is made with it is
    held under this."""
    return model.name, device, _stamp_of(model), model.switches


def run(checkpoint: LoadedModel, device: str, text: str, how: Keywords = ()) -> Trace:
    """The decoding of a text with keywords of `decode`; greedy without any."""
    name = identity(checkpoint, device)
    return limits.within(checkpoint, lambda kept: _decoded(checkpoint, name, text, how + kept))


def what_if(
    checkpoint: LoadedModel,
    device: str,
    trace: Trace,
    prefix: tuple[str | int, ...],
    ban: tuple[str | int, ...],
    target: str | None,
    *,
    waits: bool = True,
) -> Trace:
    """The greedy decoding of a run's text with a forced beginning and banned tokens, or one pass over a target; as much
    is kept of it as of the run.

    Raises:
        BusyError: `waits` is False, and it is not there yet and takes a while.
    """
    name = identity(checkpoint, device)
    how = (("prefix", prefix), ("ban", ban)) if target is None else (("target", target),)
    how += limits.kept(as_in(trace))
    if waits:
        # In a fragment, which is drawn again without the page.
        watched.say_anew()
        return _decoded(checkpoint, name, trace.source, how)
    cost, most = cost_of(checkpoint, [trace.source], how), limits.MAX_TRACE_BYTES
    found = watched.at_once(_run, cost, name, trace.source, how, None, most, _checkpoint=checkpoint)
    if found is None:
        raise BusyError("The changed run is not there yet.")
    return found


def side(checkpoint: LoadedModel, device: str, text: str, snapshot: int | None, how: Keywords) -> Trace:
    """A decoding with keywords of `decode`, by the finished model or by a snapshot of its training, which the Trace names."""
    if snapshot is None or not isinstance(checkpoint, Checkpoint):
        return run(checkpoint, device, text, how)
    name = (*identity(checkpoint, device), *_snapshot_stamps(checkpoint))
    return limits.within(checkpoint, lambda kept: _decoded(checkpoint, name, text, how + kept, snapshot))


def untrained(checkpoint: Checkpoint, device: str, trace: Trace) -> Trace:
    """The same tokens read by an untrained model of the same sizes."""
    name, kept = identity(checkpoint, device), limits.kept(as_in(trace))
    run = (trace.source, trace.output_tokens, trace.edits, trace.mistake, kept)
    return _untrained(name, run, _checkpoint=checkpoint, _trace=trace)


def inside(checkpoint: LoadedModel, device: str, trace: Trace, place: tuple[Kind, int, int, int]) -> Inside:
    """Every number of one row of one head, by kind, layer, head and row: the run's tokens are read once more, in one pass."""
    name, run, cost = identity(checkpoint, device), _tokens_of(trace), _cost_of_pass(checkpoint, trace)
    # In a fragment, which is drawn again without the page.
    watched.say_anew()
    return watched.computed("Looking into the head", _inside, cost, name, run, place, _checkpoint=checkpoint, _trace=trace)


def remembered(checkpoint: LoadedModel, device: str, trace: Trace) -> Remembered:
    """What the decoder's recurrence remembers: the run's tokens are read once more, in one pass."""
    name = identity(checkpoint, device)
    run = (trace.source, trace.target_ids, trace.output_ids, trace.edits)
    cost = float(len(trace.source_tokens) + trace.n_steps) * checkpoint.n_parameters
    return watched.computed("Reading the memory", _remembered, cost, name, run, _checkpoint=checkpoint, _trace=trace)


def attribution(checkpoint: LoadedModel, device: str, trace: Trace, method: str, mode: str, kind: Kind) -> Attribution:
    """What a measure finds of a run, by tokens."""
    name, run, cost = identity(checkpoint, device), _tokens_of(trace), _cost_of_attribution(checkpoint, trace, method, kind)
    words = f"Measuring: {METHODS[method].title}"
    asked = (method, mode, kind)
    return watched.computed(words, _attribution, cost, name, run, asked, _checkpoint=checkpoint, _trace=trace)


def attribution_at_once(
    checkpoint: LoadedModel, device: str, trace: Trace, method: str, mode: str, kind: Kind
) -> Attribution | None:
    """The same where nobody has to wait for it; otherwise None."""
    name, run, cost = identity(checkpoint, device), _tokens_of(trace), _cost_of_attribution(checkpoint, trace, method, kind)
    return watched.at_once(_attribution, cost, name, run, (method, mode, kind), _checkpoint=checkpoint, _trace=trace)


def by_length(checkpoint: Checkpoint, device: str, samples: int) -> ByLength:
    """Exact match by source length, beyond training too."""
    n_symbols = 2 * samples * sum(default_lengths(checkpoint))
    words, cost = "Decoding strings of every length", float(n_symbols * checkpoint.n_parameters)
    return watched.computed(words, _by_length, cost, identity(checkpoint, device), samples, _checkpoint=checkpoint)


def alignment_heads(model: LoadedModel, device: str, by: str, text: str) -> AlignmentHeads:
    """Which heads align: by its `task`, a direction of `word_links.gold`, or its `effect` on what is written for `text`."""
    n_heads = len(alignment.cross_heads(model))
    words, cost = "Asking every head", float(_PAIRS * _TOKENS * n_heads * model.n_parameters)
    # In a fragment, which is drawn again without the page.
    watched.say_anew()
    of = "" if by != "effect" else text
    return watched.computed(words, _alignment_heads, cost, identity(model, device), by, of, _model=model)


def replay(checkpoint: Checkpoint, device: str, text: str) -> tuple[TrainingSnapshot, ...]:
    """The snapshots of a checkpoint on one text."""
    name = (*identity(checkpoint, device), *_snapshot_stamps(checkpoint))
    with st.spinner("Going through the snapshots …", show_time=False):
        return limits.within(checkpoint, lambda kept: _replay(name, text, kept, limits.MAX_TRACE_BYTES, checkpoint))


def has_snapshots(checkpoint: Checkpoint) -> bool:
    """Whether there is a training to replay."""
    return bool(checkpoints.snapshots(checkpoint.folder))


def replayable() -> list[str]:
    """The checkpoints that have snapshots."""
    return runs_replay.replayable(entries())


@st.cache_data(ttl=30, show_spinner=False)
def entries() -> list[Entry]:
    """The checkpoint folders, looked up again after half a minute so that new ones appear."""
    return checkpoints.entries()


def models() -> dict[str, readers.Entry]:
    """The models of this machine that are not ours, by name."""
    return {entry.name: entry for entry in _models(os.environ.get(places.MODELS_VARIABLE))}


@st.cache_data(ttl=30, show_spinner=False)
def _models(folders: str | None) -> list[readers.Entry]:
    return readers.entries()


def surprise(checkpoint: Checkpoint) -> str:
    """A fresh string of the kind that the checkpoint was trained on."""
    import numpy as np

    task = checkpoint.task
    lengths = [n for n in task.evaluated_lengths if n <= 16] or list(task.evaluated_lengths)
    return task.mixed([random.choice(lengths)], np.random.default_rng(), first=random.randrange(len(task.sources)))[0]


@st.cache_resource(max_entries=_CHECKPOINTS, show_spinner="Loading the checkpoint …")
def _load(name: str, device: str, stamp: float) -> Checkpoint:
    return checkpoints.load_checkpoint(name, device)


def _decoded(checkpoint: LoadedModel, name: Identity, text: str, how: Keywords, snapshot: int | None = None) -> Trace:
    cost, most = cost_of(checkpoint, [text], how), limits.MAX_TRACE_BYTES
    return watched.decoded(_run, cost, name, text, how, snapshot, most, _checkpoint=checkpoint)


@held
def _run(
    name: Identity,
    text: str,
    how: Keywords,
    snapshot: int | None,
    most: int,
    *,
    _checkpoint: LoadedModel,
    max_length: int | None = None,
    _on_token: OnToken | None = None,
) -> Trace:
    options: Any = {"max_trace_bytes": most, "on_token": _on_token, **dict(how)}
    if max_length is not None:
        options["max_length"] = max_length
    if snapshot is None or not isinstance(_checkpoint, Checkpoint):
        return decode(_checkpoint, text, **options)
    trace = decode(checkpoints.load_snapshot(_checkpoint, snapshot), text, **options)
    return replace(trace, made_by={**trace.made_by, "snapshot": snapshot})


def cost_of(model: LoadedModel, texts: Sequence[str], how: Keywords = ()) -> float:
    """Multiplications that a decoding takes, at the most: for each token one with every parameter. Nothing where the page
    would refuse it as too large: that is said at once."""
    options: Any = dict(how)
    width = (options.get("beam_size") or 5) if options.get("strategy") == "beam" else 1
    if len(texts) * width * _MOST_ROWS * model.n_parameters < watched.QUICK:
        return 0.0
    if not trace_size(model, list(texts), **options).fits(limits.MAX_TRACE_BYTES):
        return 0.0
    n_read = max(len(model.tokenizer.source(text)) for text in texts)
    most = options.get("max_length") or model.default_max_length
    n_written = width * most if model.model.sizes.writes and "target" not in options else 0
    return len(texts) * float(n_read + n_written) * model.n_parameters


@held
def _untrained(name: Identity, run: tuple[object, ...], *, _checkpoint: Checkpoint, _trace: Trace) -> Trace:
    return untrained_run(_checkpoint, _trace)


@held
def _by_length(name: Identity, samples: int, *, _checkpoint: Checkpoint, _on_progress: OnProgress | None = None) -> ByLength:
    return accuracy_by_length(_checkpoint, samples=samples, on_progress=_on_progress)


@held
def _alignment_heads(
    name: Identity, by: str, text: str, *, _model: LoadedModel, _on_progress: OnProgress | None = None
) -> AlignmentHeads:
    texts, targets, links = [text], None, None
    if by == "task":
        texts = texts_of(_model, _PAIRS, 0)
    elif by != "effect":
        texts, targets, links = gold(by)
    return alignment.alignment_heads(_model, texts, targets=targets, links=links, on_progress=_on_progress)


@held
def _remembered(name: Identity, run: tuple[object, ...], *, _checkpoint: LoadedModel, _trace: Trace) -> Remembered:
    return read_memory(_checkpoint, _trace)


@held
def _inside(
    name: Identity, run: tuple[object, ...], place: tuple[Kind, int, int, int], *, _checkpoint: LoadedModel, _trace: Trace
) -> Inside:
    return look_inside(_checkpoint, _trace, *place)


@held
def _attribution(
    name: Identity,
    run: tuple[object, ...],
    asked: tuple[str, str, Kind],
    *,
    _checkpoint: LoadedModel,
    _trace: Trace,
    _on_progress: OnProgress | None = None,
) -> Attribution:
    method, mode, kind = asked
    return attribute(_checkpoint, _trace, method, mode=mode, kind=kind, on_progress=_on_progress)


def _tokens_of(trace: Trace) -> tuple[object, ...]:
    """What a run has read and written, and with what change: all that a model needs to go through it again."""
    return trace.source, trace.target_tokens, trace.target_ids, trace.output_tokens, trace.edits, trace.mistake


def _cost_of_pass(model: LoadedModel, trace: Trace) -> float:
    """Multiplications of one pass over a run."""
    return float(len(trace.source_tokens) + trace.n_steps) * model.n_parameters


def _cost_of_attribution(model: LoadedModel, trace: Trace, method: str, kind: Kind) -> float:
    """Likewise of a measure: a pass for each key that is taken away, and a gradient, two passes more, for each step."""
    n_passes = len(trace.keys(kind)) if METHODS[method].modes else 3 * trace.n_steps if method == "gradient" else 1
    return (1 + n_passes) * _cost_of_pass(model, trace)


@held
def _replay(name: Identity, text: str, kept: Kept, most: int, _checkpoint: Checkpoint) -> tuple[TrainingSnapshot, ...]:
    return runs_replay.replay(_checkpoint, text, max_trace_bytes=most, **dict(kept))


def _snapshot_stamps(checkpoint: Checkpoint) -> tuple[float, float, int]:
    """When a checkpoint and its snapshots last changed, and how many these are."""
    paths = checkpoints.snapshots(checkpoint.folder).values()
    changed = max(map(reading.changed_at, paths), default=0.0)
    return stamp(checkpoint.folder), changed, len(paths)


def _stamp_of(model: LoadedModel) -> float:
    """When the files of a model last changed."""
    if isinstance(model, Checkpoint):
        return stamp(model.folder)
    entry = models().get(model.name)
    return 0.0 if entry is None else stamp(entry.folder)


def stamp(folder: Path) -> float:
    """When the folder's files last changed."""
    return max((reading.changed_at(file) for file in folder.glob("*.*")), default=0.0)
