"""From a recipe to a checkpoint folder: draw, train, evaluate, save."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from transformer_viz import tasks
from transformer_viz.checkpoints import Checkpoint, refuse_existing, save_checkpoint
from transformer_viz.errors import ConfigError
from transformer_viz.model import devices, variants
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.runs.evaluate import check_samples, evaluate
from transformer_viz.training.batches import batches
from transformer_viz.training.loop import Event, train
from transformer_viz.training.recipe import Recipe


def make_checkpoint(
    recipe: Recipe,
    folder: Path,
    *,
    device: str = "auto",
    replace: bool = False,
    samples: int = 10_000,
    on_event: Callable[[Event], None] = lambda event: None,
) -> dict[str, Any]:
    """Trains what `recipe` says, judges it on `samples` fresh strings and writes the folder.

    Returns:
        The evaluation, as it stands in the folder's `config.json`.

    Raises:
        CheckpointError: the folder exists and `replace` is false; found before training starts.
        ConfigError: a setting that cannot work.
    """
    refuse_existing(folder, replace)
    where = devices.resolve(device)
    task = tasks.make(recipe.task, recipe.task_options)
    # Found now, not after an hour of training.
    check_samples(task, samples)
    model = make_model(recipe, task)
    history = []
    with devices.memory_errors(where):
        for event in train(model, batches(recipe, task), recipe, where):
            history.append(asdict(event))
            on_event(event)
    model.eval().requires_grad_(False)
    checkpoint = Checkpoint(folder.name, folder, model, task, recipe.variant, recipe.to_json(), {}, where)
    metrics = evaluate(checkpoint, samples)
    save_checkpoint(
        folder,
        model,
        task,
        variant=recipe.variant,
        recipe=recipe.to_json(),
        metrics=metrics,
        history=history,
        replace=replace,
    )
    return metrics


def make_model(recipe: Recipe, task: tasks.Task) -> Transformer:
    """The untrained model of a recipe; the same one for the same seed."""
    settings = {**variants.settings(recipe.variant), **recipe.model}
    config = ModelConfig(
        source_vocabulary_size=len(task.source_vocabulary),
        target_vocabulary_size=len(task.target_vocabulary),
        **settings,
    )
    longest = max(task.evaluated_lengths[-1], recipe.longest if recipe.lengths == "growing" else 0)
    if longest + 2 > config.max_positions:
        raise ConfigError(
            f"max_positions={config.max_positions} is too small for training on {longest} symbols, <start> and <end>; "
            f"give at least {longest + 2}"
        )
    torch.manual_seed(recipe.seed)
    return Transformer(config)
