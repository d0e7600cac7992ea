"""A training of a second, which the tests change in one thing or another, and what one reports."""

from pathlib import Path
from typing import Any

import torch

from transformer_viz import tasks
from transformer_viz.model.transformer import Transformer
from transformer_viz.training.batches import batches
from transformer_viz.training.loop import Trainer
from transformer_viz.training.make_checkpoint import make_model
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.reporter import Reporter
from transformer_viz.training.result import Event

SIZES: dict[str, Any] = {"d_model": 12, "n_heads": 3, "d_ff": 13, "n_encoder_layers": 1, "n_decoder_layers": 1}
RECIPE = Recipe(
    task="reverse",
    variant="pre-norm",
    task_options={"alphabet": "abcd", "max_length": 7, "trained_lengths": [2, 5]},
    model=SIZES,
    mix={"uniform": 1.0},
    steps=60,
    batch_size=7,
    learning_rate=0.01,
)
TASK = tasks.make_task(RECIPE.task, RECIPE.task_options)
QUIET: dict[str, Any] = {"device": "cpu", "samples": None}


def trainer(recipe: Recipe, model: Transformer | None = None) -> Trainer:
    """Before its first step."""
    return Trainer(model or make_model(recipe, TASK), batches(recipe, TASK), recipe, torch.device("cpu"))


def weights(folder: Path) -> bytes:
    """Of a checkpoint, as they stand in its file."""
    return (folder / "model.safetensors").read_bytes()


def event(step: int, loss: float = 1.0, **checks: float) -> Event:
    """After a step, with what was measured on held-out texts."""
    return Event(step, loss, 0.5, 0.25, 0.001, None, checks)


def report(job_folder: Path) -> None:
    """Eight events of a job."""
    for i in range(1, 9):
        Reporter(job_folder).report(event(50 * i, 3.0 / i, held_out=i / 20, mass_0_1=i / 30))
