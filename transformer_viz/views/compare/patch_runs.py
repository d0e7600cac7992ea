"""The runs behind patching on Compare, shared by all sessions, and the queue in which the long ones stand."""

from transformer_viz import checkpoints
from transformer_viz.addresses import Place
from transformer_viz.analysis.patching import Extent, PatchedRun, Patching
from transformer_viz.attribution import patch as patches
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.watching import OnProgress
from transformer_viz.views.cache import watched
from transformer_viz.views.cache.run_cache import held
from transformer_viz.views.cache.runs import Identity, identity, load_any
from transformer_viz.views.compare.sides import Asked

Runs = tuple[Trace, Trace]
Layers = tuple[int, ...]


def model_of(asked: Asked, device: str) -> LoadedModel:
    """What a side was run with, at its step of training."""
    model = load_any(asked.checkpoint, device)
    if asked.snapshot is None or not isinstance(model, Checkpoint):
        return model
    return checkpoints.load_snapshot(model, asked.snapshot)


def extent(model: LoadedModel, runs: Runs, by: str, kind: Kind | None = None, layers: Layers | None = None) -> Extent:
    """How much it would be; nothing is computed."""
    return patches.extent(model, *runs, by=by, kind=kind, layers=layers)


def patching(
    asked: Asked, device: str, model: LoadedModel, runs: Runs, by: str, kind: Kind | None, layers: Layers | None
) -> Patching:
    """The effect of every place."""
    of = extent(model, runs, by, kind, layers)
    name, cost = _name(asked, device, model, runs), float(of.n_places * of.n_tokens) * model.n_parameters
    words = "Putting each place of A into B"
    return watched.computed(words, _patching, cost, name, by, kind, layers, _model=model, _runs=runs)


def patched(asked: Asked, device: str, model: LoadedModel, runs: Runs, place: Place, query: int) -> PatchedRun:
    """What B writes with one place of A."""
    n_tokens = max(len(run.source_tokens) + run.n_steps for run in runs)
    name, cost = _name(asked, device, model, runs), float(n_tokens * n_tokens) * model.n_parameters
    return watched.computed("Writing B with this place of A", _patched, cost, name, place, query, _model=model, _runs=runs)


def _name(asked: Asked, device: str, model: LoadedModel, runs: Runs) -> Identity:
    """The model, and both runs by what they read and wrote and by what was changed in them."""
    texts = ((run.source, run.target_tokens, run.target_ids, run.output_tokens, run.edits, run.mistake) for run in runs)
    return (*identity(load_any(asked.checkpoint, device), device), asked.snapshot, *texts)


@held
def _patching(
    name: Identity,
    by: str,
    kind: Kind | None,
    layers: Layers | None,
    *,
    _model: LoadedModel,
    _runs: Runs,
    _on_progress: OnProgress | None = None,
) -> Patching:
    return patches.patch(_model, *_runs, by=by, kind=kind, layers=layers, on_progress=_on_progress)


@held
def _patched(
    name: Identity, place: Place, query: int, *, _model: LoadedModel, _runs: Runs, _on_progress: OnProgress | None = None
) -> PatchedRun:
    return patches.patched_run(_model, *_runs, place, query, on_progress=_on_progress)
