"""How good a checkpoint is on texts that it never saw, and how much of a head's attention is on the true key."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transformer_viz.checkpoints import Checkpoint
from transformer_viz.evaluation.evaluate_batch import evaluate_batch
from transformer_viz.model import devices
from transformer_viz.schema import whole_number
from transformer_viz.tasks import Task

_BATCH = 512
_FAILURES = 5
_LARGEST_SEED = 2**63 - 2


@dataclass(frozen=True)
class Verdict:
    """One text and what became of it."""

    source: str
    text: str
    length: int
    output: str
    is_right: bool


@dataclass
class HeadMass:
    """Summed weight of each cross-attention head on the true key, (layer, head), and over how many steps."""

    total: np.ndarray | float = 0.0
    n_steps: int = 0

    def mean(self) -> np.ndarray | None:
        """The mean weight on the true key; None where no step has one."""
        return np.asarray(self.total) / self.n_steps if self.n_steps else None


def evaluate(checkpoint: Checkpoint, samples: int = 10_000, seed: int = 0) -> dict[str, Any]:
    """Exact match on texts of every kind and length, and the best cross-attention head.

    The texts are held out of training where the task has a split (`held_out_share`), and drawn afresh elsewhere.
    Head mass is the mean weight on the true key over all steps that have one; the best head is the one fixed
    (layer, head) with the most of it over all texts.

    Args:
        checkpoint: from `load_checkpoint`.
        samples: texts in total, split evenly over lengths and sources; as many as there are where a task has fewer.
        seed: another seed draws other texts.

    Returns:
        `exact_match`, `by_source`, `by_length`, `failures` (the first few wrong ones), `samples`, `judged_by`, `seed`;
        for tasks with a true alignment `best_head_mass`, `best_head` (layer and head from 0), `head_mass` (layer, head);
        for translations `bleu`: plain data.

    Raises:
        OptionError: fewer samples than one for each length and source.
        ConfigError: the task's data is not installed.
    """
    task = checkpoint.task
    task.check_samples(samples)
    whole_number("seed", seed, 0, _LARGEST_SEED)
    judged: list[Verdict] = []
    mass = HeadMass()
    with devices.few_threads(checkpoint.device, checkpoint.n_parameters):
        for batch in batches_of(task, task.judged(samples, seed)):
            judged += verdicts(checkpoint, batch, mass)
    failures = [{"source": one.text, "output": one.output} for one in judged if not one.is_right]
    return {
        "exact_match": _share([one.is_right for one in judged]),
        "by_source": _grouped(judged, "source", task.sources),
        "by_length": {str(n): share for n, share in _grouped(judged, "length", sorted({one.length for one in judged})).items()},
        **_heads(mass),
        **({"bleu": _bleu(task, judged)} if task.metric == "bleu" else {}),
        "failures": failures[:_FAILURES],
        "samples": len(judged),
        "judged_by": task.judged_by,
        "seed": seed,
    }


def verdicts(checkpoint: Checkpoint, texts: Sequence[tuple[str, str]], mass: HeadMass) -> list[Verdict]:
    """Decodes (source, text) pairs of one length, and adds to `mass` what each head had on the true keys."""
    symbols = [checkpoint.task.symbols(text) for _, text in texts]
    judged = evaluate_batch(checkpoint, symbols)
    mass.total = mass.total + judged.on_true_key
    mass.n_steps += judged.n_letters
    each = zip(texts, symbols, judged.outputs, judged.hits, strict=True)
    return [Verdict(*text, len(s), output, hit) for text, s, output, hit in each]


def batches_of(task: Task, texts: Iterator[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Texts of one length each, in the order in which the lengths first come."""
    by_length: dict[int, list[tuple[str, str]]] = {}
    for source, text in texts:
        by_length.setdefault(len(task.symbols(text)), []).append((source, text))
    for same in by_length.values():
        for start in range(0, len(same), _BATCH):
            yield same[start : start + _BATCH]


def _heads(mass: HeadMass) -> dict[str, Any]:
    mean = mass.mean()
    if mean is None:
        return {}
    layer, head = np.unravel_index(int(mean.argmax()), mean.shape)
    return {
        "best_head_mass": round(float(mean.max()), 6),
        "best_head": {"layer": int(layer), "head": int(head)},
        "head_mass": mean.round(6).tolist(),
    }


def _bleu(task: Task, judged: Sequence[Verdict]) -> float | None:
    """Corpus BLEU of sacrebleu (Post 2018) against the data's own wording, 0 to 100; None where it is not installed."""
    try:
        from sacrebleu import corpus_bleu
    except ModuleNotFoundError:
        return None
    references = [task.reference(one.text) for one in judged]
    return round(corpus_bleu([one.output for one in judged], [references]).score, 2)


def _grouped(judged: Sequence[Verdict], by: str, names: Sequence[Any]) -> dict[Any, float]:
    groups = {name: [one.is_right for one in judged if getattr(one, by) == name] for name in names}
    return {name: _share(hits) for name, hits in groups.items() if hits}


def _share(hits: Sequence[bool]) -> float:
    return round(sum(hits) / len(hits), 6)
