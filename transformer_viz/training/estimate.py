"""What a training will need, before it starts: parameters, memory, time; and whether the machine has it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from transformer_viz import tasks
from transformer_viz.errors import ConfigError
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.devices import memory_of_machine
from transformer_viz.model.transformer import Transformer
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.tasks import Task
from transformer_viz.training.batches import batches
from transformer_viz.training.in_progress import snapshot_steps
from transformer_viz.training.recipe import Recipe, model_config

_STEP_OVERHEAD = 2.5e-3
"""Seconds a layer and step that no matrix is multiplied in, on one CPU core."""
_BYTES = 4
_COPIES = {"adam": 4, "adamw": 4, "sgd": 3}
"""Weights, gradients and the optimizer's moments."""
_RUNTIME = 350 * 2**20
"""What Python and torch take by themselves."""
WORDS_BYTES = 4 * 2**20
"""Of what a training writes beside its tensors: their names, the history, the events."""
MOST_PARAMETERS = 60_000_000
"""Of a model that is trained from a page that anybody can open."""


@dataclass(frozen=True)
class Estimate:
    """An estimate of one training; within a factor of two or three, since nothing of it has run yet.

    Attributes:
        parameters: trained numbers.
        memory: bytes, at the most.
        seconds: on this machine's CPU, with one thread.
        file_bytes: of `model.safetensors`.
    """

    parameters: int
    memory: int
    seconds: float
    file_bytes: int


def estimate(recipe: Recipe, task: Task | None = None) -> Estimate:
    """Sizes from the model itself, made without memory; the time from a measured matrix product.

    Raises:
        ConfigError: the recipe cannot work.
    """
    task = task or tasks.make(recipe.task, recipe.task_options)
    config = model_config(recipe, task)
    with torch.device("meta"):
        model = Transformer(config)
    parameters = sum(p.numel() for p in model.parameters())
    n_source, n_target = _batch_sizes(recipe, task)
    rows = recipe.batch_size
    in_layers = sum(p.numel() for n, p in model.named_parameters() if "embedding" not in n)
    # Forward and backward: six operations for each weight and token (Kaplan et al. 2020, section 2.1).
    operations = 6 * in_layers * rows * (n_source + n_target) / 2 + _attention(config, rows, n_source, n_target)
    n_layers = config.n_encoder_layers + config.n_decoder_layers
    seconds = recipe.steps * (operations / _speed() + n_layers * _STEP_OVERHEAD)
    memory = parameters * _BYTES * _COPIES[recipe.optimizer] + _activations(config, rows, n_source, n_target) + _RUNTIME
    return Estimate(parameters, int(memory), seconds, parameters * _BYTES)


def check_memory(needed: Estimate, share: float = 0.8) -> None:
    """Raises a ConfigError where the machine does not have the memory."""
    available = memory_of_machine()
    if available is not None and needed.memory > share * available:
        raise ConfigError(
            f"this training needs about {bytes_words(needed.memory)} of memory and the machine has "
            f"{bytes_words(available)}. Take smaller widths, fewer layers or a smaller batch"
        )


def check_parameters(needed: Estimate) -> None:
    """Raises a ConfigError for a model that is too large for a page that anybody can open."""
    if needed.parameters > MOST_PARAMETERS:
        raise ConfigError(
            f"this model has {needed.parameters:,} parameters; from the page at most {MOST_PARAMETERS:,} can be trained. "
            "Take smaller widths or fewer layers, or train it from the command line"
        )


def folder_bytes(needed: Estimate, recipe: Recipe, snapshots: int) -> int:
    """The most bytes that a training's folder has at any moment: the model, the state, the snapshots in half precision, and
    once more the largest of them, since a file is made beside the one that it replaces."""
    state = (_COPIES[recipe.optimizer] - 1) * needed.file_bytes
    return needed.file_bytes + 2 * state + len(snapshot_steps(recipe, snapshots)) * needed.file_bytes // 2 + WORDS_BYTES


def _batch_sizes(recipe: Recipe, task: Task) -> tuple[float, float]:
    """Mean width of source and target in a few of the recipe's own batches."""
    few = Recipe.from_json({**recipe.to_json(), "batch_size": min(recipe.batch_size, 32), "epoch_size": None})
    drawn = [batches(few, task)(step) for step in np.linspace(0, recipe.steps - 1, 4).astype(int)]
    return (
        float(np.mean([batch.source.shape[1] for batch in drawn])),
        float(np.mean([batch.target_in.shape[1] for batch in drawn])),
    )


def _attention(config: ModelConfig, rows: int, n_source: float, n_target: float) -> float:
    width = config.n_heads * (config.key_width + config.value_width)
    pairs = config.n_encoder_layers * n_source**2 + config.n_decoder_layers * (n_target**2 + n_target * n_source)
    return 6 * rows * width * pairs


def _activations(config: ModelConfig, rows: int, n_source: float, n_target: float) -> float:
    per_token = 12 * config.d_model + 2 * config.d_ff
    tokens = config.n_encoder_layers * n_source + 1.6 * config.n_decoder_layers * n_target
    logits = 4 * n_target * config.target_vocabulary_size
    return _BYTES * rows * (per_token * tokens + logits)


@cache
def _speed() -> float:
    """Operations a second of one CPU core, from matrix products of the size that such models have."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        a, b = torch.ones(1024, 128), torch.ones(128, 256)
        # The quickest of several: another program may have held up the others.
        fastest = min(_seconds(lambda: a @ b) for _ in range(20))
        # Training reaches less than that: norms, softmax and the optimizer are no matrix products.
        return 2 * 1024 * 128 * 256 / fastest / 1.5
    finally:
        torch.set_num_threads(before)


def _seconds(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start
