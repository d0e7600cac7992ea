"""`evaluate`: how often a checkpoint is right on texts that it never saw, and each head's weight on the true key."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transformer_viz.batches import compare_with_answer, drawn_texts, run_texts
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.schema import whole_number

_AT_ONCE = 512
"""Texts in a batch."""
_FAILURES = 5
_LARGEST_SEED = 2**63 - 2


@dataclass(frozen=True)
class Evaluation:
    """What a checkpoint wrote for texts, in their order.

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
    n, sizes = len(texts), checkpoint.model.sizes
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
        samples: texts in total, split evenly over lengths and sources; a task with fewer texts gives all of them.
        seed: another seed draws other texts.

    Returns:
        `exact_match`, `by_source`, `by_length`, `failures` (the first few wrong ones), `samples`, `judged_by`, `seed`;
        for tasks with a true alignment `best_head_mass`, `best_head` (layer and head from 0), `head_mass` (layer, head): plain
        data.

    Raises:
        OptionError: fewer samples than one for each length and source.
        ConfigError: the task's data is not installed.
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


# Keeps these texts apart from those of training, of `evaluate` and of `effect`.
_STREAM = 79


def sample_texts(model: LoadedModel, samples: int, seed: int) -> list[str]:
    """Fresh texts of a model's task, of all lengths and sources alike; the model has a task."""
    assert model.task is not None
    rng = np.random.default_rng([seed, _STREAM])
    return model.task.mixed(rng.choice(model.task.evaluated_lengths, samples).tolist(), rng)
