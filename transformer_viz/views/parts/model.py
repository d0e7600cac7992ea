"""What the pages share: loaded checkpoints and finished runs.

Both caches are shared by all sessions, keyed by value, and hold things that nobody changes:
models in eval mode without gradients, and Traces.
"""

import random
from pathlib import Path

import streamlit as st

from transformer_viz import checkpoints
from transformer_viz.checkpoints import Checkpoint, Entry
from transformer_viz.runs.decode import decode
from transformer_viz.trace.trace import Trace

# Everything that a visitor can make the server keep is limited in number.
_CHECKPOINTS, _RUNS = 6, 64


def load(name: str, device: str) -> Checkpoint:
    """A checkpoint by name, loaded once for all sessions, and again when its files change."""
    folder = checkpoints.find_name(name)
    return _load(name, device, stamp(folder))


def run(checkpoint: Checkpoint, device: str, text: str) -> Trace:
    """The greedy decoding of a text."""
    return _run(checkpoint.name, device, stamp(checkpoint.folder), text, checkpoint)


@st.cache_data(ttl=30, show_spinner=False)
def entries() -> list[Entry]:
    """The checkpoint folders, looked up again after half a minute so that new ones appear."""
    return checkpoints.entries()


def surprise(checkpoint: Checkpoint) -> str:
    """A fresh string of the kind that the checkpoint was trained on."""
    import numpy as np

    task = checkpoint.task
    length = random.choice([n for n in task.evaluated_lengths if n <= 16] or task.evaluated_lengths)
    return task.sample(random.choice(task.sources), length, 1, np.random.default_rng())[0]


@st.cache_resource(max_entries=_CHECKPOINTS, show_spinner="Loading the checkpoint …")
def _load(name: str, device: str, stamp: float) -> Checkpoint:
    return checkpoints.load_checkpoint(name, device)


@st.cache_resource(max_entries=_RUNS, show_spinner=False)
def _run(name: str, device: str, stamp: float, text: str, _checkpoint: Checkpoint) -> Trace:
    return decode(_checkpoint, text)


def stamp(folder: Path) -> float:
    """When the folder's files last changed."""
    return max((file.stat().st_mtime for file in folder.glob("*.*")), default=0.0)
