"""The batches of a training. Its texts are a pure function of recipe and step.

Since no random state is carried from one batch to the next, an interrupted training resumes exactly.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from transformer_viz.decoding.token_batch import TokenBatch
from transformer_viz.errors import ConfigError
from transformer_viz.tasks import Task
from transformer_viz.training.recipe import Recipe
from transformer_viz.vocabulary import END, PAD_ID, START


def make_batch(task: Task, texts: Sequence[str]) -> TokenBatch:
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
    answers = [task.answer(s) or [] for s in symbols]
    return TokenBatch.padded(
        [task.source_vocabulary.encode(task.frame(s)) for s in symbols],
        [task.target_vocabulary.encode([START, *answer]) for answer in answers],
        PAD_ID,
        written=[task.target_vocabulary.encode([*answer, END]) for answer in answers],
    )


def batches(recipe: Recipe, task: Task) -> Callable[[int], TokenBatch]:
    """A function from the step to its batch, on the CPU."""
    if recipe.epoch_size is None:
        if recipe.lengths != "natural":
            return lambda step: make_batch(task, _new_texts(recipe, task, step))
        together = lru_cache(maxsize=1)(lambda block: _natural_texts(recipe, task, block))

        def natural_batch(step: int) -> TokenBatch:
            block, place = divmod(step, recipe.sorted_batches)
            return make_batch(task, together(block)[place])

        return natural_batch
    texts = _fixed_texts(recipe, task, recipe.epoch_size)
    per_epoch = -(-len(texts) // recipe.batch_size)

    @lru_cache(maxsize=1)
    def order(epoch: int) -> np.ndarray:
        return np.random.default_rng([recipe.seed, 3, epoch]).permutation(len(texts))

    def fixed_batch(step: int) -> TokenBatch:
        epoch, place = divmod(step, max(1, per_epoch))
        return make_batch(task, [texts[i] for i in order(epoch)[place * recipe.batch_size : (place + 1) * recipe.batch_size]])

    return fixed_batch


def _new_texts(recipe: Recipe, task: Task, step: int) -> list[str]:
    """Texts drawn for one step."""
    rng = np.random.default_rng([recipe.seed, 1, step])
    if recipe.lengths == "growing":
        # Mostly long strings, which are harder, and a share with lengths drawn evenly, so that very short strings occur too.
        power = 1.0 if rng.random() < recipe.even_lengths else 0.5
        lengths = np.full(recipe.batch_size, max(1, int(np.ceil(recipe.top_length_at(step) * rng.random() ** power))))
    else:
        lengths = rng.choice(task.evaluated_lengths, size=recipe.batch_size)
    which = rng.choice(list(recipe.mix), p=list(recipe.mix.values()), size=recipe.batch_size)
    texts: list[str] = []
    for source in recipe.mix:
        for length in np.unique(lengths[which == source]):
            count = int(((which == source) & (lengths == length)).sum())
            texts += task.sample(source, int(length), count, rng, "train")
    return texts


def _natural_texts(recipe: Recipe, task: Task, block: int) -> list[list[str]]:
    """Texts drawn for the steps of a block: short ones together and long ones together, in an order by chance."""
    rng = np.random.default_rng([recipe.seed, 1, block])
    n_batches = recipe.sorted_batches
    counts = rng.multinomial(n_batches * recipe.batch_size, list(recipe.mix.values()))
    wanted = zip(recipe.mix, counts.tolist(), strict=True)
    texts = [text for source, count in wanted for text in task.sample(source, None, count, rng, "train")]
    if n_batches == 1:
        return [texts]
    texts.sort(key=lambda text: len(task.symbols(text)))
    dealt = [texts[i * len(texts) // n_batches : (i + 1) * len(texts) // n_batches] for i in range(n_batches)]
    return [dealt[i] for i in rng.permutation(n_batches)]


def _fixed_texts(recipe: Recipe, task: Task, size: int) -> list[str]:
    """The texts of every epoch: each comes once in it, in a new order each time."""
    rng = np.random.default_rng([recipe.seed, 2])
    everything = task.texts("train")
    texts: list[str] = []
    for source, share in recipe.mix.items():
        count = round(share * size)
        if everything is not None:
            texts += [everything[i] for i in rng.permutation(len(everything))[:count]]
        elif task.natural_lengths:
            texts += task.sample(source, None, count, rng, "train")
        else:
            lengths = rng.choice(task.evaluated_lengths, size=count)
            texts += [text for n in lengths for text in task.sample(source, int(n), 1, rng, "train")]
    return texts
