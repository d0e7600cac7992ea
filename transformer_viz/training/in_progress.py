"""A checkpoint folder while its model is being trained: whenever the process is killed, the folder loads and training goes on.

The folder is made in one move with the untrained model. From then on every file is replaced in one move each:
`training.safetensors` is the whole state from which training goes on, `model.safetensors` what everybody else reads.
At the end the metrics come into `config.json`, and the state goes.
"""

import glob
import os
import shutil
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from transformer_viz import checkpoints, locks
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import CheckpointError, OptionError, listed
from transformer_viz.training.loop import Trainer
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.state import Row, load_state, save_state
from transformer_viz.writing import PARTIAL, write_tensors, write_text

STATE = "training.safetensors"


class InProgressCheckpoint:
    """The folder of one training.

    Args:
        checkpoint: the untrained one; its folder is where everything goes.
        recipe: what it is trained by.
    """

    def __init__(self, checkpoint: Checkpoint, recipe: Recipe) -> None:
        self.checkpoint = checkpoint
        self.recipe = recipe
        self.folder = checkpoint.folder

    def begin(self, *, replace: bool) -> None:
        """Makes the folder, with the untrained weights."""
        clean(self.folder)
        made = self.checkpoint
        with _disk(self.folder):
            checkpoints.save_checkpoint(
                self.folder,
                made.model,
                made.task,
                variant=made.variant,
                recipe=self.recipe.to_json(),
                metrics={},
                replace=replace,
            )

    def resume(self, trainer: Trainer) -> tuple[list[Row], dict[str, Any]]:
        """Brings the trainer to where the folder is; the history so far, and what was saved with it."""
        clean(self.folder)
        state = self.folder / STATE
        return load_state(trainer, state) if os.path.lexists(state) else ([], {})

    def keep(self, trainer: Trainer, history: list[Row], more: Mapping[str, Any]) -> None:
        """Saves where training is."""
        with _disk(self.folder):
            save_state(trainer, history, self.folder / STATE, more)
            self._write_model(history)

    def keep_snapshot(self, step: int) -> None:
        """The weights after `step` steps, in half precision."""
        weights = {name: tensor.half() for name, tensor in self.checkpoint.model.state_dict().items()}
        if not all(bool(tensor.isfinite().all()) for tensor in weights.values()):
            return  # a weight beyond 65504: a snapshot that could not be loaded
        with _disk(self.folder):
            (self.folder / "snapshots").mkdir(exist_ok=True)
            write_tensors(weights, self.folder / "snapshots" / f"step-{step:06d}.safetensors")

    def finish(self, history: list[Row], metrics: Mapping[str, Any]) -> None:
        """An ordinary checkpoint: the metrics are in, the state is gone."""
        made = self.checkpoint
        text = checkpoints.description(made.model, made.task, made.variant, self.recipe.to_json(), metrics)
        with _disk(self.folder):
            self._write_model(history)
            write_text(text, self.folder / "config.json")
            (self.folder / STATE).unlink(missing_ok=True)

    def discard(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write_model(self, history: list[Row]) -> None:
        write_tensors(self.checkpoint.model.state_dict(), self.folder / "model.safetensors")
        write_text(checkpoints.csv(list(history)), self.folder / "history.csv")


def check_place(folder: Path, recipe: Recipe, *, resume: bool, replace: bool) -> bool:
    """Whether there is a training to go on with; everything impossible is found before anything starts.

    Raises:
        CheckpointError: the folder is there and may not be touched, or is of another recipe.
    """
    if not resume or not (folder / "config.json").exists():
        if not replace:
            checkpoints.refuse_existing(folder, replace)
        return False
    about = checkpoints.read_description(folder)
    if not (folder / STATE).exists() and about.metrics:
        raise OptionError(f"{folder} is finished; there is nothing to resume. Train it anew with --force.")
    if different := sorted(name for name, value in recipe.to_json().items() if about.recipe.get(name) != value):
        raise OptionError(
            f"{folder} was begun with other settings: {listed(different)} differ. "
            "Resume with the same ones, or start again with --force."
        )
    return True


def begun_model(folder: Path) -> Mapping[str, Any]:
    """The settings of the model with which the training in a folder was begun."""
    return checkpoints.read_description(folder).model.to_json()


@contextmanager
def alone(folder: Path) -> Generator[None]:
    """Nobody else trains into the folder meanwhile. The lock is a file beside it, since the folder itself may be replaced.

    Raises:
        OptionError: somebody does already.
        CheckpointError: nothing can be written there.
    """
    lock = lock_of(folder)
    with ExitStack() as stack:
        try:
            with _disk(folder):
                lock.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locks.held(lock))
        except locks.Held:
            raise OptionError(
                f"{folder} is being trained by another process. Wait until it ends, stop it, or choose another folder with -o."
            ) from None
        stack.callback(lock.unlink, missing_ok=True)
        yield


def lock_of(folder: Path) -> Path:
    """The file that is locked while a folder is trained into, the same one by whatever way the folder is named."""
    place = folder.resolve()
    return place.with_name(f".{place.name}.lock")


@contextmanager
def _disk(folder: Path) -> Generator[None]:
    """Says what a full disk, or one that takes nothing, means for the training."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{folder} cannot be written: {error.filename or 'a file'}: {error.strerror or error}. What was trained until the "
            "last save is kept. Make room, then go on with --resume."
        ) from error


def clean(folder: Path) -> None:
    """Removes what a killed process left half-written beside and in the folder."""
    for place, beginning in ((folder.parent, f".{glob.escape(folder.name)}"), (folder, ""), (folder / "snapshots", "")):
        for path in place.glob(f"{beginning}.*{PARTIAL}"):
            shutil.rmtree(path, ignore_errors=True)


def snapshot_steps(recipe: Recipe, count: int) -> list[int]:
    """`count` steps from 0 to the last: 0, then log-spaced from a hundredth of the training on; before it little happens."""
    if count < 2:
        return []
    spaced = np.geomspace(max(1, recipe.steps // 100), recipe.steps, count - 1).round().astype(int).tolist()
    return sorted({0, *spaced, recipe.steps})
