"""The runs behind patching on Compare, shared by all sessions, and the queue in which the long ones stand."""

from transformer_viz import checkpoints
from transformer_viz.addresses import Place
from transformer_viz.attribution import patch as patches
from transformer_viz.attribution.result.patching import PatchedRun, Patching, PatchingSize
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.views.cache.computing import compute
from transformer_viz.views.cache.model_list import load_any
from transformer_viz.views.compare.sides import Asked
from transformer_viz.views.components.recorded_calls import call

Runs = tuple[Trace, Trace]
Layers = tuple[int, ...]


def model_of(asked: Asked, device: str) -> LoadedModel:
    """What a side was run with, at its step of training."""
    model = load_any(asked.checkpoint, device)
    if asked.snapshot is None or not isinstance(model, Checkpoint):
        return model
    return call(checkpoints.load_snapshot, model, asked.snapshot)


def extent(model: LoadedModel, runs: Runs, by: str, kind: Kind | None = None, layers: Layers | None = None) -> PatchingSize:
    """How much it would be; nothing is computed."""
    return patches.extent(model, *runs, by=by, kind=kind, layers=layers)


def patching(model: LoadedModel, runs: Runs, by: str, kind: Kind | None, layers: Layers | None) -> Patching:
    """The effect of every place."""
    of = extent(model, runs, by, kind, layers)
    words, cost = "Putting each place of A into B", float(of.n_places * of.n_tokens) * model.n_parameters
    return compute(words, cost, patches.patch, model, *runs, by=by, kind=kind, layers=layers)


def patched(model: LoadedModel, runs: Runs, place: Place, query: int) -> PatchedRun:
    """What B writes with one place of A."""
    n_tokens = max(len(run.source_tokens) + run.n_steps for run in runs)
    words, cost = "Writing B with this place of A", float(n_tokens * n_tokens) * model.n_parameters
    return compute(words, cost, patches.patched_run, model, *runs, place, query)
