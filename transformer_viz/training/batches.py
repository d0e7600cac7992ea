"""Which texts a training sees, batch by batch, each a pure function of recipe and step.

No generator state is carried from one batch to the next, so a run that was cut off goes on exactly.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch

from transformer_viz.tasks import Task
from transformer_viz.training.batch import Batch, make_batch
from transformer_viz.training.encoded import EncodedTexts
from transformer_viz.training.recipe import Recipe

_CPU = torch.device("cpu")


def batches(recipe: Recipe, task: Task, device: torch.device = _CPU) -> Callable[[int], Batch]:
    """A function from the step to its batch.

    Args:
        recipe: what is drawn.
        task: frames, answers and encodes the texts.
        device: where batches of fixed texts are made; those of new texts are made by Python, on the CPU.
    """
    if recipe.epoch_size is not None:
        return _fixed(recipe, task, recipe.epoch_size, device)
    return lambda step: make_batch(task, _texts(recipe, task, step, np.random.default_rng([recipe.seed, 1, step])))


def _texts(recipe: Recipe, task: Task, step: int, rng: np.random.Generator) -> list[str]:
    if recipe.lengths == "natural":
        counts = rng.multinomial(recipe.batch_size, list(recipe.mix.values()))
        wanted = zip(recipe.mix, counts.tolist(), strict=True)
        return [text for source, count in wanted for text in task.sample(source, None, count, rng, "train")]
    if recipe.lengths == "growing":
        lengths = np.full(recipe.batch_size, _growing_length(recipe, step, rng))
    else:
        lengths = rng.choice(task.evaluated_lengths, size=recipe.batch_size)
    which = rng.choice(list(recipe.mix), p=list(recipe.mix.values()), size=recipe.batch_size)
    texts: list[str] = []
    for source in recipe.mix:
        for length in np.unique(lengths[which == source]):
            count = int(((which == source) & (lengths == length)).sum())
            texts += task.sample(source, int(length), count, rng, "train")
    return texts


def _growing_length(recipe: Recipe, step: int, rng: np.random.Generator) -> int:
    """Mostly long strings, which are harder; a share of all lengths alike, or single letters would hardly occur."""
    power = 1.0 if rng.random() < recipe.even_lengths else 0.5
    return max(1, int(np.ceil(recipe.top_length_at(step) * rng.random() ** power)))


def _fixed(recipe: Recipe, task: Task, size: int, device: torch.device) -> Callable[[int], Batch]:
    """Epochs over the same strings, in a new order each time."""
    rng = np.random.default_rng([recipe.seed, 2])
    texts = [text for source, share in recipe.mix.items() for text in _fixed_texts(task, source, round(share * size), rng)]
    encoded = EncodedTexts(task, texts, device)
    per_epoch = -(-len(texts) // recipe.batch_size)

    @lru_cache(maxsize=1)
    def order(epoch: int) -> np.ndarray:
        return np.random.default_rng([recipe.seed, 3, epoch]).permutation(len(texts))

    def batch(step: int) -> Batch:
        epoch, place = divmod(step, per_epoch)
        return encoded.rows(order(epoch)[place * recipe.batch_size : (place + 1) * recipe.batch_size])

    return batch


def _fixed_texts(task: Task, source: str, size: int, rng: np.random.Generator) -> list[str]:
    if (everything := task.texts("train")) is not None:
        return [everything[i] for i in rng.permutation(len(everything))[:size]]
    if task.natural_lengths:
        return task.sample(source, None, size, rng, "train")
    lengths = rng.choice(task.evaluated_lengths, size=size)
    return [text for n in lengths for text in task.sample(source, int(n), 1, rng, "train")]
