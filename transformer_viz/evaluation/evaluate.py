"""`evaluate`: how often a checkpoint is right on texts that it never saw, and each head's weight on the true key.

`accuracy_by_length` measures both, and the share of right tokens, at each source length, also beyond the trained ones.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transformer_viz.batches import compare_with_answer, drawn_texts, run_texts
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import InputError, OptionError
from transformer_viz.evaluation.result import AccuracyAtLength, AccuracyByLength
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.schema import whole_number
from transformer_viz.tasks import Task
from transformer_viz.tracing.progress import OnProgress

_AT_ONCE = 512
"""Texts in a batch."""
_FAILURES = 5
_LARGEST_SEED = 2**63 - 2
_STREAM = 79
"""Keeps fresh texts apart from those of training, of `evaluate` and of `effect`."""


@dataclass(frozen=True)
class Evaluation:
    """The outputs of a checkpoint for texts, in their order.

    Attributes:
        outputs: without special tokens, as text.
        lengths: symbols of each text.
        is_exact: whether all of it, `<end>` included, is the true answer; never where nobody knows it.
        n_right: how many tokens of each true answer, `<end>` included, were written at their place.
        n_tokens: how many tokens each true answer has, `<end>` included.
        n_steps: how many steps of all texts have a true key.
        on_true_key: float64 (layer, head), the weight of cross-attention on it, summed over these steps.
    """

    outputs: list[str]
    lengths: list[int]
    is_exact: list[bool]
    n_right: list[int]
    n_tokens: list[int]
    n_steps: int
    on_true_key: np.ndarray

    @property
    def head_mass(self) -> np.ndarray | None:
        """Mean weight on the true key, (layer, head); None where no step has one."""
        return self.on_true_key / self.n_steps if self.n_steps else None


def evaluate_texts(checkpoint: Checkpoint, texts: Sequence[str], at_once: int = _AT_ONCE) -> Evaluation:
    """Decodes texts that the checkpoint's task drew greedily, at most `at_once` in a batch.

    Raises:
        DeviceError: the device ran out of memory.
    """
    n, sizes = len(texts), checkpoint.network.sizes
    outputs, lengths, is_exact, n_right, n_tokens, n_steps = [""] * n, [0] * n, [False] * n, [0] * n, [0] * n, 0
    on_true_key = np.zeros((len(sizes.layers["cross"]), sizes.heads["cross"]))
    n_special = len(checkpoint.task.frame([]))
    drawn = list(drawn_texts(checkpoint, texts))
    for batch in run_texts(checkpoint, drawn, record=("weights",), kinds=("cross",), at_once=at_once):
        for text, ids, weights in zip(batch.texts, batch.written, batch.weights["cross"], strict=True):
            i, correctness = text.index, compare_with_answer(checkpoint, text.answer, ids)
            outputs[i], lengths[i] = checkpoint.tokenizer.text(ids), len(text.ids) - n_special
            is_exact[i], n_right[i] = correctness.is_exact, correctness.n_right
            n_tokens[i] = len(text.answer.tokens or ())
            steps = [(t, key) for t, key in enumerate(text.alignment[: len(ids)]) if key is not None]
            rows, keys = [t for t, _ in steps], [key for _, key in steps]
            on_true_key += weights[:, :, rows, keys].sum(-1, dtype=np.float64)
            n_steps += len(steps)
    return Evaluation(outputs, lengths, is_exact, n_right, n_tokens, n_steps, on_true_key)


def evaluate(checkpoint: Checkpoint, samples: int = 10_000, seed: int = 0) -> dict[str, Any]:
    """Measures exact match on texts of every kind and length, and finds the best cross-attention head.

    The texts are held out of training where the task has a split (`held_out_share`), and drawn afresh elsewhere.
    Head mass is the mean weight on the true key over all steps that have one; the best head is the one fixed
    (layer, head) with the most of it over all texts.

    Args:
        checkpoint: from `load_checkpoint`.
        samples: texts in total, split evenly over lengths and sources, at least one for each; a task with fewer texts gives all
            of them.
        seed: another seed draws other texts.

    Returns:
        `exact_match`, `by_source`, `by_length`, `failures` (the first few wrong ones), `samples`, `judged_by`, `seed`;
        for tasks with a true alignment `best_head_mass`, `best_head` (layer and head from 0), `head_mass` (layer, head): plain
        data.

    Raises:
        OptionError: fewer samples than one for each length and source.
        ConfigError: the task's data is not installed.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse-small", device="cpu")
        >>> found = tv.evaluate(model, samples=100)
        >>> 0 <= found["exact_match"] <= 1
        True
    """
    task = checkpoint.task
    task.check_samples(samples)
    whole_number("seed", seed, 0, _LARGEST_SEED)
    drawn = list(task.judged(samples, seed))
    evaluation = evaluate_texts(checkpoint, [text for _, text in drawn])
    by_source, by_length = dict[str, list[bool]](), dict[int, list[bool]]()
    for (source, _), length, is_exact in zip(drawn, evaluation.lengths, evaluation.is_exact, strict=True):
        by_source.setdefault(source, []).append(is_exact)
        by_length.setdefault(length, []).append(is_exact)
    result = {
        "exact_match": _share(evaluation.is_exact),
        "by_source": {source: _share(by_source[source]) for source in task.sources if source in by_source},
        "by_length": {str(length): _share(hits) for length, hits in sorted(by_length.items())},
    }
    if (mean := evaluation.head_mass) is not None:
        layer, head = np.unravel_index(int(mean.argmax()), mean.shape)
        result |= {
            "best_head_mass": round(float(mean.max()), 6),
            "best_head": {"layer": int(layer), "head": int(head)},
            "head_mass": mean.round(6).tolist(),
        }
    failures = [
        {"source": text, "output": output}
        for (_, text), output, is_exact in zip(drawn, evaluation.outputs, evaluation.is_exact, strict=True)
        if not is_exact
    ]
    about = {"samples": len(drawn), "judged_by": task.judged_by, "seed": seed}
    return {**result, "failures": failures[:_FAILURES], **about}


def _share(hits: Sequence[bool]) -> float:
    return round(sum(hits) / len(hits), 6)


def sample_texts(model: LoadedModel, samples: int, seed: int) -> list[str]:
    """Fresh texts of a model's task, of all lengths and sources alike; the model has a task."""
    assert model.task is not None
    rng = np.random.default_rng([seed, _STREAM])
    return model.task.mixed(rng.choice(model.task.evaluated_lengths, samples).tolist(), rng)


MOST_SAMPLES = 10_000
_BEYOND = 1.5
_MOST_LENGTHS = 64


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

    Returns:
        The share of right answers of each length, with its 95 % interval.

    Raises:
        OptionError: an impossible length, number or seed.
        InputError: the task has no string of any of these lengths.
        DeviceError: the device ran out of memory.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse-small", device="cpu")
        >>> found = tv.accuracy_by_length(model, [6], samples=5)
        >>> len(found.to_frame())
        1
    """
    whole_number("samples", samples, 1, MOST_SAMPLES)
    whole_number("seed", seed, 0, 2**63 - 1)
    most, trained = longest_possible(checkpoint), trained_lengths(checkpoint)
    wanted = default_lengths(checkpoint) if lengths is None else lengths
    sorted_lengths = sorted({whole_number("lengths", length, 1, most) for length in wanted})
    if not sorted_lengths:
        raise OptionError(f"lengths is empty; give whole numbers from 1 to {most}")
    points = []
    # Twice as many symbols take twice as long.
    n_all, n_done = sum(sorted_lengths), 0
    for length in sorted_lengths:
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
        raise InputError(
            f"Task {checkpoint.task.name!r} has no strings of {sorted_lengths[0]} to {sorted_lengths[-1]} symbols."
        )
    return AccuracyByLength(checkpoint=checkpoint.name, points=tuple(points), trained=trained, samples=samples, seed=seed)


def trained_lengths(checkpoint: Checkpoint) -> tuple[int, int]:
    """The shortest and the longest source that training drew; without a recipe, those that the task is judged by."""
    evaluated = checkpoint.task.evaluated_lengths
    longest = checkpoint.recipe.get("longest")
    if checkpoint.recipe.get("lengths") == "growing" and isinstance(longest, int):
        return 1, longest
    return min(evaluated), max(evaluated)


def default_lengths(checkpoint: Checkpoint) -> tuple[int, ...]:
    """The lengths up to half as much again as the longest of training; thinned out evenly where they are many."""
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
    return checkpoint.network.config.max_positions - len(checkpoint.task.frame([]))


def fresh_strings(task: Task, length: int, count: int, rng: np.random.Generator) -> list[str]:
    """`count` sources of this length that training never saw, of all the task's sources alike."""
    shares = [count // len(task.sources) + (i < count % len(task.sources)) for i in range(len(task.sources))]
    drawn = (task.sample(source, length, n, rng, "held-out") for source, n in zip(task.sources, shares, strict=True) if n)
    return [text for texts in drawn for text in texts]
