"""Batches of token ids for teacher forcing, each a pure function of recipe and step.

No generator state is carried from one batch to the next, so a run that was cut off goes on exactly.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_viz.errors import ConfigError
from transformer_viz.tasks import Task
from transformer_viz.training.recipe import Recipe
from transformer_viz.vocabulary import END, PAD_ID, START


@dataclass(frozen=True)
class Batch:
    """Ids and padding, (batch, length); padding is None where every row has the same length."""

    source: Tensor
    target_in: Tensor
    target_out: Tensor
    source_padding: Tensor | None
    target_padding: Tensor | None

    def to(self, device: torch.device) -> "Batch":
        """The same batch on a device; a GPU copies what is pinned while it computes."""
        return self._each(lambda part: part.to(device, non_blocking=device.type == "cuda"))

    def pin_memory(self) -> "Batch":
        """The same batch in memory that a GPU can read by itself."""
        return self._each(Tensor.pin_memory)

    def _each(self, act: Callable[[Tensor], Tensor]) -> "Batch":
        ids = (act(self.source), act(self.target_in), act(self.target_out))
        return Batch(*ids, *(None if part is None else act(part) for part in (self.source_padding, self.target_padding)))


def padded(rows: Sequence[Sequence[int]], pad_id: int = PAD_ID) -> Tensor:
    """Rows of ids as one (batch, longest) tensor, filled up on the right."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows])


def make_batch(task: Task, texts: Sequence[str]) -> Batch:
    """Source and answer of each text, framed; the decoder reads `<start> answer` and writes `answer <end>`.

    Raises:
        ConfigError: there is no text.
    """
    if not texts:
        raise ConfigError(
            f"task {task.name!r} has no text of this length to train on: all are held out. "
            "Take a larger alphabet, longer strings, or held_out_share 0."
        )
    symbols = [task.symbols(text) for text in texts]
    source = padded([task.source_vocabulary.encode(task.frame(s)) for s in symbols])
    answers = [task.answer(s) or [] for s in symbols]
    target_in = padded([task.target_vocabulary.encode([START, *a]) for a in answers])
    target_out = padded([task.target_vocabulary.encode([*a, END]) for a in answers])
    return Batch(source, target_in, target_out, _padding(source, symbols), _padding(target_in, answers))


def _padding(ids: Tensor, rows: Sequence[Sequence[str]]) -> Tensor | None:
    """Where a batch is padded; None where every row has the same length, which needs no mask."""
    return None if len({len(row) for row in rows}) == 1 else ids == PAD_ID


def batches(recipe: Recipe, task: Task) -> Callable[[int], Batch]:
    """A function from the step to its batch."""
    if recipe.epoch_size is not None:
        return _fixed(recipe, task, recipe.epoch_size)
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


def _fixed(recipe: Recipe, task: Task, size: int) -> Callable[[int], Batch]:
    """Epochs over the same strings, in a new order each time."""
    rng = np.random.default_rng([recipe.seed, 2])
    texts = [text for source, share in recipe.mix.items() for text in _fixed_texts(task, source, round(share * size), rng)]
    size = len(texts)
    per_epoch = -(-size // recipe.batch_size)

    def batch(step: int) -> Batch:
        epoch, place = divmod(step, per_epoch)
        order = np.random.default_rng([recipe.seed, 3, epoch]).permutation(size)
        return make_batch(task, [texts[i] for i in order[place * recipe.batch_size : (place + 1) * recipe.batch_size]])

    return batch


def _fixed_texts(task: Task, source: str, size: int, rng: np.random.Generator) -> list[str]:
    if (everything := task.texts("train")) is not None:
        return [everything[i] for i in rng.permutation(len(everything))[:size]]
    if task.natural_lengths:
        return task.sample(source, None, size, rng, "train")
    lengths = rng.choice(task.evaluated_lengths, size=size)
    return [text for n in lengths for text in task.sample(source, int(n), 1, rng, "train")]
