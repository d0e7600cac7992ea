"""From a recipe to a checkpoint folder: draw, train, measure, save; stop early, and go on after a stop."""

import math
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from transformer_viz import tasks
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import ConfigError
from transformer_viz.evaluation.evaluate import evaluate
from transformer_viz.evaluation.probe import Probe
from transformer_viz.model import devices
from transformer_viz.model.transformer import Transformer
from transformer_viz.tasks import Task
from transformer_viz.training.batches import batches
from transformer_viz.training.in_progress import InProgressCheckpoint, alone, begun_model, check_place, snapshot_steps
from transformer_viz.training.loop import Event, Trainer
from transformer_viz.training.parallel import Workers, workers
from transformer_viz.training.prefetch import BatchAt, Prefetch, num_workers
from transformer_viz.training.processes import processes
from transformer_viz.training.recipe import Recipe, model_config
from transformer_viz.training.state import Row

_EVERY = 50
"""Steps between two events."""
_CHECKS = 30
"""How often the held-out texts are looked at, at most; not more often than every `_LEAST` steps."""
_LEAST = 10
_KEEP_SECONDS = 20.0
_LESS_MEMORY = "End what else takes memory there and go on with --resume, or train anew with a smaller batch or smaller sizes."

ControlSignal = Literal["go on", "pause", "stop"]
_SIGNALS: tuple[ControlSignal, ...] = get_args(ControlSignal)


@dataclass(frozen=True, kw_only=True)
class Making:
    """How a recipe is carried out; nothing here changes the numbers that come out.

    Attributes:
        device: `auto`, `cpu`, `cuda` or `mps`.
        replace: a folder that is there is replaced.
        resume: a training that was cut off goes on.
        samples: texts of the evaluation at the end; None = no evaluation.
        snapshots: how many sets of weights along the training are kept, log-spaced.
        keep_seconds: time between two saves; 0 = after every event.
        on_event: called with every event, in the first process only.
        wish: asked after every step: `pause` keeps the state and ends, `stop` evaluates what there is and ends.
    """

    device: str = "auto"
    replace: bool = False
    resume: bool = False
    samples: int | None = 10_000
    snapshots: int = 0
    keep_seconds: float = _KEEP_SECONDS
    on_event: Callable[[Event], None] = lambda event: None
    wish: Callable[[], ControlSignal] = lambda: "go on"


def make_checkpoint(
    recipe: Recipe,
    folder: Path,
    making: Making = Making(),
    *,
    prepare: Callable[[Transformer], None] = lambda model: None,
) -> dict[str, Any] | None:
    """Trains what `recipe` says, judges it on texts that it never saw, and writes the folder.

    Args:
        recipe: what to make. With several processes (torchrun) its `batch_size` is that of all of them together.
        folder: where; it can be loaded from the first moment on.
        making: how.
        prepare: may change the untrained model, for example its embeddings.

    Returns:
        The evaluation, as it stands in the folder's `config.json`; empty in other processes than the first; None where
        training was paused.

    Raises:
        CheckpointError: the folder exists, and may be neither replaced nor resumed; or the disk is full.
        ConfigError: a setting that cannot work; found before training starts.
        DeviceError: there is not enough memory; what was saved is kept.
        OptionError: another process trains into the folder.
    """
    where = devices.resolve(making.device)
    task = tasks.make(recipe.task, recipe.task_options)
    if making.samples is not None:
        task.check_samples(making.samples)
    mine = processes()
    with alone(folder) if mine.is_first else nullcontext():
        goes_on = check_place(folder, recipe, resume=making.resume, replace=making.replace)
        with workers(where, mine) as group, devices.memory_errors(where, _LESS_MEMORY):
            model = make_model(recipe, task, begun_model(folder) if goes_on else None)
            prepare(model)
            checkpoint = Checkpoint(folder.name, folder, model.to(where), task, recipe.variant, recipe.to_json(), {}, where)
            trainer = Trainer(checkpoint.model, _batches(recipe, task, where, group), recipe, where, group)
            return _Maker(checkpoint, trainer, recipe, making, group).make(goes_on)


class _Maker:
    """One training with its folder, its history and its checks."""

    def __init__(self, checkpoint: Checkpoint, trainer: Trainer, recipe: Recipe, making: Making, group: Workers) -> None:
        self.checkpoint, self.trainer, self.recipe, self.making, self.group = checkpoint, trainer, recipe, making, group
        self.folder = InProgressCheckpoint(checkpoint, recipe)
        self.history: list[Row] = []
        self.best, self.checks_since_best = -1.0, 0
        self.kept_at = time.monotonic()
        self.snapshots = set(snapshot_steps(recipe, making.snapshots))
        n_checks = max(1, min(_CHECKS, recipe.steps // _LEAST))
        self.checked = {round(recipe.steps * i / n_checks) for i in range(1, n_checks + 1)}

    def make(self, goes_on: bool) -> dict[str, Any] | None:
        if goes_on:
            self.history, more = self.folder.resume(self.trainer)
            self.best, self.checks_since_best = float(more.get("best", -1.0)), int(more.get("checks_since_best", 0))
        elif self.group.is_first:
            self.folder.begin(replace=self.making.replace)
        if self.group.is_first and self.trainer.step == 0 and 0 in self.snapshots:
            self.folder.keep_snapshot(0)
        probe = Probe(self.checkpoint) if self.group.is_first else None
        try:
            wish = self._train(probe)
        except ConfigError:
            if not goes_on and self.group.is_first:
                self.folder.discard()
            raise
        if wish == "pause":
            return None
        if not self.group.is_first:
            return {}
        self.checkpoint.model.eval().requires_grad_(False)
        samples = self.making.samples
        metrics = {} if samples is None else evaluate(self.checkpoint, samples)
        if self.trainer.step < self.recipe.steps:
            metrics["stopped_at"] = self.trainer.step
        self.folder.finish(self.history, metrics)
        return metrics

    def _train(self, probe: Probe | None) -> ControlSignal:
        for event in self.trainer.run(self._reports):
            wish = self._after(event, probe)
            if wish != "go on":
                return wish
        return "go on"

    def _reports(self, step: int) -> bool:
        is_due = step % _EVERY == 0 or step in self.checked or step in self.snapshots
        # All processes must report at the same steps, so a wish is heard between them only by one that is alone.
        return is_due or (self.group.count == 1 and self.making.wish() != "go on")

    def _after(self, event: Event, probe: Probe | None) -> ControlSignal:
        """Measures, keeps and tells; what to do next."""
        wish: ControlSignal = "go on"
        if probe is not None:
            if not math.isfinite(event.loss):
                raise ConfigError(
                    f"the loss is {event.loss} after step {event.step}: training fell apart, and nothing was written. "
                    "Take a smaller --learning-rate."
                )
            if event.step in self.checked:
                event = replace(event, checks=probe())
            self.history.append(event.row())
            if event.step in self.snapshots:
                self.folder.keep_snapshot(event.step)
            wish = "stop" if self._is_exhausted(event) else self.making.wish()
            if wish == "pause" or time.monotonic() - self.kept_at >= self.making.keep_seconds:
                self.folder.keep(self.trainer, self.history, self._more())
                self.kept_at = time.monotonic()
            self.making.on_event(event)
        return _SIGNALS[self.group.agree(_SIGNALS.index(wish), self.trainer.device)]

    def _is_exhausted(self, event: Event) -> bool:
        """Whether the held-out texts have not come out better for too long."""
        if "held_out" not in event.checks:
            return False
        is_better = event.checks["held_out"] > self.best
        self.best = max(self.best, event.checks["held_out"])
        self.checks_since_best = 0 if is_better else self.checks_since_best + 1
        return self.recipe.patience is not None and self.checks_since_best >= self.recipe.patience

    def _more(self) -> dict[str, float]:
        return {"best": self.best, "checks_since_best": self.checks_since_best}


def _batches(recipe: Recipe, task: Task, where: torch.device, group: Workers) -> BatchAt:
    batch_at = batches(recipe, task, where)
    # Fixed texts need no makers: their batches are made on the device.
    workers_ahead = num_workers(where, group.count) if recipe.epoch_size is None else 0
    return Prefetch(batch_at, recipe.steps, workers_ahead) if workers_ahead else batch_at


def make_model(recipe: Recipe, task: Task, begun: Mapping[str, Any] | None = None) -> Transformer:
    """The untrained model of a recipe; the same one for the same seed. `begun` as in `model_config`."""
    config = model_config(recipe, task, begun)
    torch.manual_seed(recipe.seed)
    return Transformer(config)
