"""Estimates what a training will need (parameters, memory, time), and checks that the machine has it."""

import time
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch

from transformer_viz import tasks
from transformer_viz.errors import ConfigError
from transformer_viz.model.devices import memory_of_machine
from transformer_viz.model.transformer import Transformer
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.training.batches import batches
from transformer_viz.training.recipe import Recipe, model_config

BYTES = 4
"""Bytes of one number of a model in training."""
COPIES = {"adam": 4, "adamw": 4, "sgd": 3}
"""Weights, gradients and the optimizer's moments."""
_RUNTIME = 350 * 2**20
"""Bytes that Python and torch take by themselves."""


@dataclass(frozen=True)
class Estimate:
    """An estimate of one training; within a factor of two or three, since nothing of it has run yet.

    Attributes:
        parameters: trained numbers.
        memory: bytes, at the most.
        seconds: on this machine's CPU, with one thread.
    """

    parameters: int
    memory: int
    seconds: float


def estimate(recipe: Recipe) -> Estimate:
    """Sizes from the model itself, made without memory; the time from a measured matrix product.

    Raises:
        ConfigError: the recipe cannot work.
    """
    task = tasks.make_task(recipe.task, recipe.task_options)
    config = model_config(recipe, task)
    with torch.device("meta"):
        model = Transformer(config)
    parameters = sum(p.numel() for p in model.parameters())
    in_layers = sum(p.numel() for n, p in model.named_parameters() if "embedding" not in n)
    few = replace(recipe, batch_size=min(recipe.batch_size, 32), epoch_size=None)
    drawn = [batches(few, task)(step) for step in np.linspace(0, recipe.steps - 1, 4).astype(int)]
    n_source, n_target = (
        float(np.mean([ids.shape[1] for ids in widths]))
        for widths in ([batch.source for batch in drawn], [batch.target for batch in drawn])
    )
    rows, encoder, decoder = recipe.batch_size, config.n_encoder_layers, config.n_decoder_layers
    # Forward and backward: six operations for each weight and token (Kaplan et al. 2020, section 2.1), and for each pair of
    # query and key.
    pairs = encoder * n_source**2 + decoder * (n_target**2 + n_target * n_source)
    per_row = in_layers * (n_source + n_target) / 2 + config.n_heads * (config.key_width + config.value_width) * pairs
    # 2.5 ms a layer and step in which no matrix is multiplied.
    seconds = recipe.steps * (6 * rows * per_row / _operations_per_second() + (encoder + decoder) * 2.5e-3)
    tokens = encoder * n_source + 1.6 * decoder * n_target
    activations = rows * ((12 * config.d_model + 2 * config.d_ff) * tokens + 4 * n_target * config.target_vocabulary_size)
    memory = BYTES * (parameters * COPIES[recipe.optimizer] + activations) + _RUNTIME
    return Estimate(parameters, int(memory), seconds)


def check_memory(needed: Estimate) -> None:
    """Raises a ConfigError where the machine does not have the memory."""
    available = memory_of_machine()
    if available is not None and needed.memory > 0.8 * available:
        raise ConfigError(
            f"this training needs about {bytes_words(needed.memory)} of memory and the machine has "
            f"{bytes_words(available)}. Take smaller widths, fewer layers or a smaller batch"
        )


@cache
def _operations_per_second() -> float:
    """Operations a second on one CPU core, from matrix products of the size that such models have."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    a, b = torch.ones(1024, 128), torch.ones(128, 256)
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        a @ b
        seconds.append(time.perf_counter() - start)
    torch.set_num_threads(before)
    # The quickest, since another program may have held up the others; training reaches less than that: norms, softmax and the
    # optimizer are no matrix products.
    return 2 * 1024 * 128 * 256 / min(seconds) / 1.5
