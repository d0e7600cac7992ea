"""A checkpoint folder during training. Whenever the process is killed, the folder still loads and training can be resumed.

The folder appears in one move, with the untrained model. From then on each file is replaced in one move:
`training.safetensors` is the state for resuming (weights, the optimizer's moments, the step and the history),
`model.safetensors` is for everybody else. At the end the metrics are added to `config.json` and the state is removed.
Files are safetensors and JSON only, so nothing in a folder can run.
"""

import glob
import json
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer_viz import checkpoints, locks, untrusted_files
from transformer_viz.atomic_files import PARTIAL, write_tensors, write_text
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import CheckpointError, FileError, OptionError, join_names
from transformer_viz.model.transformer import Transformer
from transformer_viz.schema import Count, read_value, to_plain
from transformer_viz.training.loop import Trainer
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.result import Event

STATE = "training.safetensors"
_LARGEST_HEADER = 64 * 2**20
"""Bytes of the names and the text in a state; the whole history is among them."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The plain part of a saved state: the number of steps that were taken, and the history up to there."""

    step: Count
    history: tuple[Event, ...]


def check_folder(folder: Path, recipe: Recipe, *, resume: bool, replace: bool) -> Mapping[str, Any] | None:
    """The settings of the model with which the training in a folder was begun, where there is one to resume; else None.

    Raises:
        CheckpointError, OptionError: the folder is there and may not be touched, or is of another recipe.
    """
    if not resume or not (folder / "config.json").exists():
        checkpoints.refuse_existing(folder, replace)
        return None
    about = checkpoints.read_description(folder)
    if not (folder / STATE).exists() and about.metrics:
        raise OptionError(f"{folder} is finished; there is nothing to resume. Train it anew with --force.")
    if different := sorted(name for name, value in recipe.to_json().items() if about.recipe.get(name) != value):
        raise OptionError(
            f"{folder} was begun with other settings: {join_names(different)} differ. "
            "Resume with the same ones, or start again with --force."
        )
    return about.model.to_json()


@contextmanager
def training_into(folder: Path) -> Generator[None]:
    """Locks a folder against other trainings, and says in a sentence where it cannot be written.

    The lock is a file beside the folder, since the folder itself may be replaced.

    Raises:
        CheckpointError: the disk is full, or the folder may not be written to.
        OptionError: another process trains into it.
    """
    lock = lock_of(folder)
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        with locks.hold_lock(lock, removes=True):
            yield
    except locks.LockHeld:
        raise OptionError(
            f"{folder} is being trained by another process. Wait until it ends, stop it, or choose another folder with -o."
        ) from None
    except OSError as error:
        if (folder / STATE).exists():
            kept = "What was trained until the last save is kept. Make room, then go on with --resume."
        else:
            kept = "No step is saved yet. Make room, then begin again, with --resume if the folder is there already."
        raise CheckpointError(
            f"{folder} cannot be written: {error.filename or 'a file'}: {error.strerror or error}. {kept}"
        ) from error


def lock_of(folder: Path) -> Path:
    """The file that is locked while a folder is trained into, the same one by whatever path the folder is named."""
    place = folder.resolve()
    return place.with_name(f".{place.name}.lock")


def remove_partial_files(folder: Path) -> None:
    """Removes what a killed process left half-written beside and in the folder."""
    for place, beginning in ((folder.parent, f".{glob.escape(folder.name)}"), (folder, ""), (folder / "snapshots", "")):
        for path in place.glob(f"{beginning}.*{PARTIAL}"):
            shutil.rmtree(path, ignore_errors=True)


def save(trainer: Trainer, history: list[Event], folder: Path) -> None:
    """Writes the state, then the model and the history; a kill leaves each file old or new."""
    tensors = {f"model.{name}": tensor for name, tensor in trainer.model.state_dict().items()}
    for number, moments in trainer.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": torch.as_tensor(value) for name, value in moments.items()}
    progress = Progress(step=trainer.step, history=tuple(history))
    write_tensors(tensors, folder / STATE, {"state": json.dumps(to_plain(progress))})
    _save_model(trainer.model, history, folder)


def finish(checkpoint: Checkpoint, history: list[Event]) -> None:
    """Writes the model, the history and the metrics of a training that has ended, and removes its state."""
    folder, model = checkpoint.folder, checkpoint.network
    _save_model(model, history, folder)
    about = checkpoints.description(model, checkpoint.task, checkpoint.variant, checkpoint.recipe, checkpoint.metrics)
    write_text(about, folder / "config.json")
    (folder / STATE).unlink(missing_ok=True)


def _save_model(model: Transformer, history: list[Event], folder: Path) -> None:
    write_tensors(model.state_dict(), folder / "model.safetensors")
    write_text(checkpoints.csv([event.row() for event in history]), folder / "history.csv")


def load(trainer: Trainer, folder: Path) -> list[Event]:
    """Brings a trainer to the step at which the folder was saved, the first one where it never was; returns the history.

    Raises:
        CheckpointError: the state is damaged, or of another training.
    """
    path, weights = folder / STATE, trainer.model.state_dict()
    # The weights, two moments of each in double precision, and the text.
    largest = _LARGEST_HEADER + 8 * sum(weight.nbytes for weight in weights.values())
    try:
        with untrusted_files.open_tensors(path, largest, _LARGEST_HEADER) as file:
            progress: Progress = read_value(Progress, untrusted_files.parse_json((file.metadata() or {})["state"]))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if progress.step > trainer.recipe.steps:
            raise FileError(f"step={progress.step} is not possible; the recipe has {trainer.recipe.steps}")
        trainer.model.load_state_dict({name: tensors.pop(f"model.{name}") for name in weights})
        parameters = [parameter for group in trainer.optimizer.param_groups for parameter in group["params"]]
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            _, number, moment = name.split(".", 2)
            if tensor.dim() and tensor.shape != parameters[int(number)].shape:
                raise FileError(f"{name} is not of its weight's shape")
            moments.setdefault(int(number), {})[moment] = tensor
        trainer.optimizer.load_state_dict({**trainer.optimizer.state_dict(), "state": moments})
    except FileNotFoundError:
        return []
    except (OSError, FileError, RuntimeError, LookupError, TypeError, ValueError, AttributeError) as error:
        why = error if isinstance(error, FileError) else type(error).__name__
        raise CheckpointError(f"{path} is damaged or belongs to another training ({why}). Start again with --force.") from error
    trainer.step = progress.step
    return list(progress.history)


def save_snapshot(model: Transformer, step: int, folder: Path) -> None:
    """The weights after `step` steps, in half precision."""
    weights = {name: tensor.half() for name, tensor in model.state_dict().items()}
    if not all(bool(tensor.isfinite().all()) for tensor in weights.values()):
        return  # a weight beyond 65504: a snapshot that could not be loaded
    (folder / "snapshots").mkdir(exist_ok=True)
    write_tensors(weights, folder / "snapshots" / f"step-{step:06d}.safetensors")


def snapshot_steps(recipe: Recipe, count: int) -> list[int]:
    """`count` steps from 0 to the last: 0, then log-spaced from a hundredth of the training on; before it little happens."""
    if count < 2:
        return []
    spaced = np.geomspace(max(1, recipe.steps // 100), recipe.steps, count - 1).round().astype(int).tolist()
    return sorted({0, *spaced, recipe.steps})
