"""`make_checkpoint`: trains a recipe into a checkpoint folder, with evaluation, snapshots, early stopping and resuming."""

import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as replaced
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from transformer_viz import checkpoints, tasks
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import ConfigError
from transformer_viz.evaluation.evaluate import evaluate, evaluate_texts
from transformer_viz.model import devices
from transformer_viz.model.transformer import Transformer
from transformer_viz.tasks import Task
from transformer_viz.training import saved_state
from transformer_viz.training.batches import batches
from transformer_viz.training.embeddings import Side, check_fit
from transformer_viz.training.loop import Trainer
from transformer_viz.training.recipe import Recipe, model_config
from transformer_viz.training.result import Event

_REPORT_EVERY = 50
"""Steps between two events."""
_CHECKS = 30
"""The most checks on held-out texts in a training; at least `_LEAST_BETWEEN_CHECKS` steps lie between two."""
_LEAST_BETWEEN_CHECKS = 10
_CHECKED_TEXTS = 200
_LESS_MEMORY = "End what else takes memory there and go on with --resume, or train anew with a smaller batch or smaller sizes."

ControlSignal = Literal["go on", "pause", "stop"]


def make_checkpoint(
    recipe: Recipe,
    folder: Path,
    *,
    device: str = "auto",
    replace: bool = False,
    resume: bool = False,
    samples: int | None = 10_000,
    snapshots: int = 0,
    save_seconds: float = 20.0,
    embeddings: Mapping[Side, Tensor] = MappingProxyType({}),
    on_event: Callable[[Event], None] = lambda event: None,
    control: Callable[[], ControlSignal] = lambda: "go on",
) -> dict[str, Any] | None:
    """Trains a model by a recipe, evaluates it on texts that it never saw, and writes the checkpoint's folder.

    Besides the recipe, only `embeddings` changes the trained weights.

    Args:
        recipe: what to make.
        folder: where to; it can be loaded from the first moment on.
        device: `auto`, `cpu`, `cuda` or `mps`.
        replace: whether to replace a folder that is there.
        resume: whether to go on with an interrupted training.
        samples: texts of the evaluation at the end; None = no evaluation.
        snapshots: how many sets of weights along the training are kept, log-spaced.
        save_seconds: time between two saves; 0 = after every event.
        embeddings: pretrained matrices (token, d_model) that the model begins with.
        on_event: called with every event.
        control: called after every step: with `pause` the state is saved and training ends, with `stop` the model is evaluated
            as it is and training ends.

    Returns:
        The evaluation, as it stands in the folder's `config.json`; None where training was paused.

    Raises:
        CheckpointError: the folder exists, and may be neither replaced nor resumed; or the disk is full.
        ConfigError: a setting that cannot work; found before training starts.
        DeviceError: there is not enough memory; what was saved is kept.
        OptionError: another process trains into the folder.
    """
    where, task = devices.resolve(device), tasks.make_task(recipe.task, recipe.task_options)
    if samples is not None:
        task.check_samples(samples)
    # Held-out texts are looked at after steps that are evenly spaced; the last one is among them.
    n_checks = max(1, min(_CHECKS, recipe.steps // _LEAST_BETWEEN_CHECKS))
    checked = [round(recipe.steps * i / n_checks) for i in range(1, n_checks + 1)]
    kept = saved_state.snapshot_steps(recipe, snapshots)

    def is_reported(step: int) -> bool:
        return step % _REPORT_EVERY == 0 or step in checked or step in kept or control() != "go on"

    with saved_state.training_into(folder), devices.memory_errors(where, _LESS_MEMORY):
        begun = saved_state.check_folder(folder, recipe, resume=resume, replace=replace)
        model = make_model(recipe, task, begun, embeddings)
        trainer = Trainer(model, batches(recipe, task), recipe, where)
        checkpoint = Checkpoint(folder.name, folder, model, task, recipe.variant, recipe.to_json(), {}, where)

        # From here on the folder loads at every moment, and training goes on from it.
        saved_state.remove_partial_files(folder)
        if begun is None:
            how: Any = {"variant": recipe.variant, "recipe": recipe.to_json(), "metrics": {}, "replace": replace}
            checkpoints.save_checkpoint(folder, model, task, **how)
        history = saved_state.load(trainer, folder)
        if trainer.step == 0 and 0 in kept:
            saved_state.save_snapshot(model, 0, folder)

        # Another seed than the final evaluation's, whose texts must not have decided when training stopped.
        held_out = [text for _, text in task.judged(max(_CHECKED_TEXTS, task.least_samples()), seed=1)]
        saved_at = time.monotonic()
        try:
            for event in trainer.run(is_reported):
                if not math.isfinite(event.loss):
                    raise ConfigError(
                        f"the loss is {event.loss} after step {event.step}: training fell apart, and nothing was written. "
                        "Take a smaller --learning-rate."
                    )
                if event.step in checked:
                    event = replaced(event, checks=check_held_out(checkpoint, held_out))
                history.append(event)
                if event.step in kept:
                    saved_state.save_snapshot(model, event.step, folder)
                # Whether the share of held-out texts that come out right was last improved `patience` checks ago.
                shares = [past.checks["held_out"] for past in history if "held_out" in past.checks]
                since_best = len(shares) - 1 - shares.index(max(shares)) if shares else 0
                is_exhausted = recipe.patience is not None and since_best >= recipe.patience and event.step in checked
                signal = "stop" if is_exhausted else control()
                if signal == "pause" or time.monotonic() - saved_at >= save_seconds:
                    saved_state.save(trainer, history, folder)
                    saved_at = time.monotonic()
                on_event(event)
                if signal == "pause":
                    return None
                if signal == "stop":
                    break
        except ConfigError:
            if begun is None:
                shutil.rmtree(folder, ignore_errors=True)
            raise

        model.eval().requires_grad_(False)
        metrics = {} if samples is None else evaluate(checkpoint, samples)
        if trainer.step < recipe.steps:
            metrics["stopped_at"] = trainer.step
        saved_state.finish(replaced(checkpoint, metrics=metrics), history)
        return metrics


def check_held_out(checkpoint: Checkpoint, texts: Sequence[str]) -> dict[str, float]:
    """`held_out` (exact match on texts), and `mass_LAYER_HEAD`, counted from 0, for tasks with a true alignment."""
    checkpoint.network.eval()
    evaluation = evaluate_texts(checkpoint, texts)
    checks = {"held_out": sum(evaluation.is_exact) / len(evaluation.is_exact)} if evaluation.is_exact else {}
    if (mean := evaluation.head_mass) is not None:
        checks |= {f"mass_{layer}_{head}": float(share) for (layer, head), share in np.ndenumerate(mean)}
    return checks


def make_model(
    recipe: Recipe,
    task: Task,
    begun: Mapping[str, Any] | None = None,
    embeddings: Mapping[Side, Tensor] = MappingProxyType({}),
) -> Transformer:
    """The untrained model of a recipe; the same one for the same seed.

    Args:
        recipe: sizes and seed.
        task: has the vocabularies.
        begun: as in `model_config`.
        embeddings: pretrained matrices (token, d_model) that it begins with.

    Raises:
        ConfigError: the sizes cannot be, or a matrix does not fit.
    """
    config = model_config(recipe, task, begun)
    check_fit(embeddings, config)
    torch.manual_seed(recipe.seed)
    model = Transformer(config)
    for side, matrix in embeddings.items():
        model.get_submodule(f"{side}_embedding").load_state_dict({"weight": matrix})
    return model
