"""The models of this machine, listed and loaded once for all sessions."""

import os
import random
import threading
from collections.abc import Callable, Hashable
from contextlib import nullcontext
from pathlib import Path

import streamlit as st
from cachetools import LRUCache, TTLCache

from transformer_viz import app_folders, checkpoints, readers, tasks, untrusted_files
from transformer_viz.checkpoints import Checkpoint, Entry
from transformer_viz.errors import BusyError, ModelError, TransformerVizError
from transformer_viz.language import ENGLISH, enumerated, say, speaking
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.numbers_in_words import bytes_words, compact_words
from transformer_viz.views.cache import long_jobs
from transformer_viz.views.cache.job_queue import Job
from transformer_viz.views.cache.long_jobs import Progress
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call, record
from transformer_viz.views.state import switches

_CHECKPOINTS = 6
LARGE = 100_000_000
"""Bytes of a model whose loading is shown from its beginning; a smaller one is there in a moment."""
_FOR_SMALL = 20.0
"""Seconds that a page waits for a small model."""
MOST_BYTES = 8_000_000_000
"""The most bytes of loaded models that are not ours."""
_SINGLE = 4
"""Bytes of a number in single precision."""

loaded: LRUCache[Hashable, LoadedModel] = LRUCache(MOST_BYTES, getsizeof=lambda model: _SINGLE * model.n_parameters)
refused: TTLCache[Hashable, TransformerVizError] = TTLCache(_CHECKPOINTS, ttl=20)
"""The errors of models that could not be loaded a moment ago: a page asks for its model more than once."""
_access = threading.Lock()


@st.cache_resource(ttl=30, show_spinner=False)
def entries() -> list[Entry]:
    """The checkpoint folders, looked up again after half a minute so that new ones appear."""
    return checkpoints.entries()


def models() -> dict[str, readers.Entry]:
    """The models of this machine that are not ours, by name."""
    named = (os.environ.get(variable) for variable in (app_folders.MODELS_VARIABLE, app_folders.MODULES_VARIABLE))
    return {entry.name: entry for entry in _models(*named)}


@st.cache_resource(ttl=30, show_spinner=False)
def _models(folders: str | None, modules: str | None) -> list[readers.Entry]:
    return readers.entries()


def load(name: str, device: str) -> Checkpoint:
    """A checkpoint by name, loaded once for all sessions, and again when its files change."""
    with st.spinner(say("Loading the checkpoint …")):
        found = _load(name, device, changed_at(checkpoints.find_name(name)))
    return record(found, Call(readers.load_model, name, device))


@st.cache_resource(max_entries=_CHECKPOINTS, show_spinner=False)
def _load(name: str, device: str, changed_at: float) -> Checkpoint:
    return checkpoints.load_checkpoint(name, device)


def load_any(name: str, device: str) -> LoadedModel:
    """A checkpoint, or another model by its listed name, switched as this session wants it. While it is loaded, the page ends
    with its size."""
    entry = models().get(name)
    if entry is None:
        return load(name, device)
    model, made = switches.switched(_load_model(name, device, entry)), Call(readers.load_model, name, device)
    for name, how in switches.of(model).calls():
        made = Call(getattr(type(model), name), made, **how)
    return record(model, made)


def _load_model(name: str, device: str, entry: readers.Entry) -> LoadedModel:
    if entry.description is None:
        raise ModelError(entry.error or f"{name} cannot be loaded.")
    key = (name, device, changed_at(entry.folder))
    if key in refused:
        raise refused[key]
    if (model := _get(key)) is not None:
        return model
    words, needed = say("Loading {name}: {size}", name=name, size=size_words(entry)), entry.description.memory
    limit = long_jobs.time_limit_words()
    late = ModelError(
        say("{name} was not loaded in time: a run may take {limit}. Take a smaller model.", name=name, limit=limit)
    )
    is_small = needed < LARGE

    def work(job: Job) -> LoadedModel:
        def report(words: str, share: float | None) -> None:
            if not job.report(Progress(words, share)):
                raise late

        # What a model says of itself is kept for all visitors.
        with speaking(ENGLISH):
            return load_within(key, needed, lambda: readers.load_named(name, device, report))

    try:
        with st.spinner(literal(words)) if is_small else nullcontext():
            patience = _FOR_SMALL if is_small else 0.0
            return long_jobs.wait_for(("load", *key), words, work, late_error=late, patience=patience)
    except BusyError:
        raise
    except TransformerVizError as error:
        refused[key] = error
        raise


def load_within(key: Hashable, needed: int, read: Callable[[], LoadedModel]) -> LoadedModel:
    """Loads a model, in a thread that loads one at a time; where there is no room for it, those not used for the longest time
    are let go.

    Raises:
        ModelError: it alone is more than the server keeps.
    """
    if (model := _get(key)) is not None:
        return model
    if needed > loaded.maxsize:
        raise ModelError(
            f"This model takes {bytes_words(needed)} of memory; the page holds {bytes_words(loaded.maxsize)} of models. "
            "Take a smaller one, or run it in Python with tv.load_model."
        )
    with _access:
        while loaded.currsize + needed > loaded.maxsize:
            loaded.popitem()
    model = read()
    with _access:
        loaded[key] = model
    return model


def _get(key: Hashable) -> LoadedModel | None:
    """A model that is loaded; nobody waits for one that is being loaded."""
    with _access:
        return loaded.get(key)


def is_to_be_loaded(name: str, device: str) -> bool:
    """Tells whether it takes a while until `load_any` has this model, and the page ends with how far it is."""
    entry = models().get(name)
    if entry is None or entry.description is None or entry.description.memory < LARGE:
        return False
    key = (name, device, changed_at(entry.folder))
    return key not in refused and _get(key) is None


def notes() -> dict[str, str]:
    """Describes each model that can be chosen: what it does, or its family, and how large it is, before anybody loads one."""
    described = {}
    for entry in entries():
        if (about := entry.description) is not None:
            does, size = say(tasks.about(about.task.name)), compact_words(entry.n_parameters)
            described[entry.name] = (
                say("{does}, trained without its mask; {n} parameters", does=does, n=size)
                if about.recipe.get("mistake")
                else say("{does}; {n} parameters", does=does, n=size)
            )
    for entry in models().values():
        if entry.description is not None:
            described[entry.name] = enumerated(filter(None, (entry.description.family, size_words(entry))))
    return described


def size_words(entry: readers.Entry) -> str:
    """`135 M parameters, 540 MB`; nothing for a checkpoint."""
    if entry.description is None or not entry.description.n_parameters:
        return ""
    n, size = compact_words(entry.description.n_parameters), bytes_words(entry.description.memory)
    return say("{n} parameters, {size}", n=n, size=size)


def identity(model: LoadedModel) -> Hashable:
    """The identity of a model: other files, another step of its training, another device or another switch make another one."""
    if isinstance(model, Checkpoint):
        return model.name, str(model.device), changed_at(model.folder), model.snapshot
    entry = models().get(model.name)
    return model.name, str(model.device), changed_at(entry.folder) if entry else 0.0, model.options


def changed_at(folder: Path) -> float:
    """When the folder's files, its snapshots among them, last changed."""
    files = [folder] if untrusted_files.is_file(folder) else folder.rglob("*.*")
    return max(map(untrusted_files.modification_time, files), default=0.0)


def has_snapshots(checkpoint: Checkpoint) -> bool:
    """Tells whether there is a training to replay."""
    return bool(checkpoints.snapshots(checkpoint.folder))


def surprise(checkpoint: Checkpoint) -> str:
    """A fresh string of the kind that the checkpoint was trained on."""
    import numpy as np

    task = checkpoint.task
    lengths = [n for n in task.evaluated_lengths if n <= 16] or list(task.evaluated_lengths)
    return task.mixed([random.choice(lengths)], np.random.default_rng(), first=random.randrange(len(task.sources)))[0]
