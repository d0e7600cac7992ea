"""How good a checkpoint is on fresh strings, and how much of a head's attention is on the true key."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import OptionError
from transformer_viz.runs.judged import judge
from transformer_viz.tasks import Task

MOST_SAMPLES = 1_000_000
_BATCH = 512
_FAILURES = 5
# Keeps the strings apart from those of training, which are drawn from [seed, 1..3, …].
_STREAM = 77


def evaluate(checkpoint: Checkpoint, samples: int = 10_000, seed: int = 0) -> dict[str, Any]:
    """Exact match on fresh strings of every length and source, and the best cross-attention head.

    Head mass is the mean weight on the true key over all letter steps; the best head is the one fixed
    (layer, head) with the most of it over all strings.

    Args:
        checkpoint: from `load_checkpoint`.
        samples: strings in total, split evenly over lengths and sources.
        seed: another seed draws other strings.

    Returns:
        `exact_match`, `by_source`, `by_length`, `best_head_mass`, `best_head` (layer and head from 0),
        `head_mass` (layer, head), `failures` (the first few wrong ones), `samples`, `seed`: plain data.

    Raises:
        OptionError: fewer samples than one for each length and source.
    """
    task = checkpoint.task
    check_samples(task, samples)
    by_source: dict[str, list[bool]] = {source: [] for source in task.sources}
    by_length: dict[str, list[bool]] = {str(length): [] for length in task.evaluated_lengths}
    mass: np.ndarray | float = 0.0
    n_letters = 0
    failures: list[dict[str, str]] = []
    for length, drawn in _drawn(task, samples, seed):
        judged = judge(checkpoint, [task.read(text) for _, text in drawn])
        wrong = [(text, output) for (_, text), output, hit in zip(drawn, judged.outputs, judged.hits, strict=True) if not hit]
        failures += [{"source": text, "output": output} for text, output in wrong[: _FAILURES - len(failures)]]
        by_length[str(length)] += judged.hits
        for (source, _), hit in zip(drawn, judged.hits, strict=True):
            by_source[source].append(hit)
        mass = mass + judged.on_true_key
        n_letters += judged.n_letters
    head_mass = np.asarray(mass) / max(1, n_letters)
    best = np.unravel_index(int(head_mass.argmax()), head_mass.shape)
    return {
        "exact_match": _mean([hit for hits in by_source.values() for hit in hits]),
        "by_source": {source: _mean(hits) for source, hits in by_source.items()},
        "by_length": {length: _mean(hits) for length, hits in by_length.items()},
        "best_head_mass": round(float(head_mass.max()), 6),
        "best_head": {"layer": int(best[0]), "head": int(best[1])},
        "head_mass": head_mass.round(6).tolist(),
        "failures": failures,
        "samples": samples,
        "seed": seed,
    }


def check_samples(task: Task, samples: int) -> None:
    """Raises an OptionError unless every length and source gets at least one string."""
    n_cells = len(task.evaluated_lengths) * len(task.sources)
    if isinstance(samples, bool) or not isinstance(samples, int) or not n_cells <= samples <= MOST_SAMPLES:
        raise OptionError(
            f"samples={samples!r} is not possible; it is a whole number from {n_cells} "
            f"(one for each of {len(task.evaluated_lengths)} lengths and {len(task.sources)} sources) to {MOST_SAMPLES}"
        )


def _drawn(task: Task, samples: int, seed: int) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """Chunks of (source, text) of one length each; all lengths and sources alike, up to one string."""
    rng = np.random.default_rng([seed, _STREAM])
    n_cells = len(task.evaluated_lengths) * len(task.sources)
    cell = 0
    for length in task.evaluated_lengths:
        drawn: list[tuple[str, str]] = []
        for source in task.sources:
            count = samples // n_cells + (cell < samples % n_cells)
            drawn += [(source, text) for text in task.sample(source, length, count, rng)]
            cell += 1
        for start in range(0, len(drawn), _BATCH):
            yield length, drawn[start : start + _BATCH]


def _mean(hits: list[bool]) -> float:
    return round(sum(hits) / len(hits), 6)
