"""`accuracy_by_length`: exact match, token accuracy and head mass at each source length, also beyond the trained ones."""

import math
from collections.abc import Iterable

import numpy as np

from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import InputError, OptionError
from transformer_viz.evaluation.evaluate import evaluate_texts
from transformer_viz.evaluation.result import AccuracyAtLength, AccuracyByLength
from transformer_viz.schema import whole_number
from transformer_viz.tasks import Task
from transformer_viz.tracing.progress import OnProgress

MOST_SAMPLES = 10_000
_BEYOND = 1.5
_MOST_LENGTHS = 64
# Keeps the strings apart from those of training, of `evaluate` and of `effect`.
_STREAM = 79


def accuracy_by_length(
    checkpoint: Checkpoint,
    lengths: Iterable[int] | None = None,
    samples: int = 100,
    seed: int = 0,
    *,
    on_progress: OnProgress | None = None,
) -> AccuracyByLength:
    """Decodes fresh strings of each length greedily and compares them with the true answers.

    Args:
        checkpoint: from `load_checkpoint`.
        lengths: source lengths in symbols; by default up to 64 lengths from 1 to 1.5 times the longest of training, as far as
            the model has positions. A length for which the task has no strings is left out.
        samples: strings for each length, evenly from all of the task's sources.
        seed: another seed draws other strings; the strings of one length are the same whatever other lengths are asked for.
        on_progress: is called before each length with the share that is done, from 0 to 1; what it raises ends the work.

    Raises:
        OptionError: an impossible length, number or seed.
        InputError: the task has no string of any of these lengths.
        DeviceError: the device ran out of memory.
    """
    whole_number("samples", samples, 1, MOST_SAMPLES)
    whole_number("seed", seed, 0, 2**63 - 1)
    most, trained = longest_possible(checkpoint), trained_lengths(checkpoint)
    wanted = default_lengths(checkpoint) if lengths is None else lengths
    asked = sorted({whole_number("lengths", length, 1, most) for length in wanted})
    if not asked:
        raise OptionError(f"lengths is empty; give whole numbers from 1 to {most}")
    points = []
    # Twice as many symbols take twice as long.
    n_all, n_done = sum(asked), 0
    for length in asked:
        if on_progress is not None:
            on_progress(n_done / n_all)
        n_done += length
        texts = fresh_strings(checkpoint.task, length, samples, np.random.default_rng([seed, _STREAM, length]))
        if not texts:
            continue
        evaluation = evaluate_texts(checkpoint, texts)
        mass = evaluation.head_mass
        points.append(
            AccuracyAtLength(
                length=length,
                is_trained=trained[0] <= length <= trained[1],
                n_strings=len(texts),
                n_exact=sum(evaluation.is_exact),
                token_accuracy=sum(evaluation.n_right) / max(1, sum(evaluation.n_tokens)),
                n_letters=evaluation.n_steps,
                head_mass=None if mass is None else tuple(tuple(row) for row in mass.tolist()),
            )
        )
    if not points:
        raise InputError(f"Task {checkpoint.task.name!r} has no strings of {asked[0]} to {asked[-1]} symbols.")
    return AccuracyByLength(checkpoint=checkpoint.name, points=tuple(points), trained=trained, samples=samples, seed=seed)


def trained_lengths(checkpoint: Checkpoint) -> tuple[int, int]:
    """The shortest and the longest source that training drew; without a recipe, those that the task is judged by."""
    evaluated = checkpoint.task.evaluated_lengths
    longest = checkpoint.recipe.get("longest")
    if checkpoint.recipe.get("lengths") == "growing" and isinstance(longest, int):
        return 1, longest
    return min(evaluated), max(evaluated)


def default_lengths(checkpoint: Checkpoint) -> tuple[int, ...]:
    """All lengths up to half as much again as the longest of training; thinned out evenly where they are many."""
    first, last = trained_lengths(checkpoint)
    most = max(1, min(math.ceil(_BEYOND * last), longest_possible(checkpoint)))
    lengths = np.linspace(1, most, min(most, _MOST_LENGTHS)).round().astype(int).tolist()
    return tuple(sorted({*lengths, *(n for n in (first, last) if n <= most)}))


def lengths_beyond(checkpoint: Checkpoint, n: int) -> tuple[int, ...]:
    """The `n` lengths that follow the longest by which the task is judged.

    Raises:
        OptionError: the model has no positions for so many symbols.
    """
    last, most = max(checkpoint.task.evaluated_lengths), longest_possible(checkpoint)
    whole_number("beyond", n, 1, 2**31)
    if last + n > most:
        raise OptionError(
            f"beyond={n} is not possible; this model reads at most {most} symbols, "
            f"{most - last} more than the {last} of its task"
        )
    return tuple(range(last + 1, last + n + 1))


def longest_possible(checkpoint: Checkpoint) -> int:
    """The most symbols that fit the model's positions beside `<start>` and `<end>`."""
    return checkpoint.model.config.max_positions - len(checkpoint.task.frame([]))


def fresh_strings(task: Task, length: int, count: int, rng: np.random.Generator) -> list[str]:
    """`count` sources of this length that training never saw, of all the task's sources alike."""
    shares = [count // len(task.sources) + (i < count % len(task.sources)) for i in range(len(task.sources))]
    drawn = (task.sample(source, length, n, rng, "held-out") for source, n in zip(task.sources, shares, strict=True) if n)
    return [text for texts in drawn for text in texts]
