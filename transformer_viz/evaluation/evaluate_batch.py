"""Strings decoded and compared with the task's true answers, and the weight that every head has on the true keys."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from transformer_viz.checkpoints import Checkpoint
from transformer_viz.decoding.greedy import greedy
from transformer_viz.model import devices
from transformer_viz.trace.recorder import Recorder
from transformer_viz.vocabulary import END

MOST_WEIGHTS = 2**26
"""Cross-attention weights held at once: 256 MiB in float32."""


@dataclass(frozen=True)
class BatchEvaluation:
    """What came out, in the order of the strings.

    Attributes:
        outputs: what was written, without special symbols, as text.
        hits: whether all of it, `<end>` included, is the true answer; never where nobody knows it.
        n_right: how many tokens of each true answer, `<end>` included, were written at their place.
        n_tokens: how many tokens each true answer has, `<end>` included.
        on_true_key: weight on the true key, summed over all steps that have one, (layer, head) float64.
        n_letters: how many such steps there were.
    """

    outputs: list[str]
    hits: list[bool]
    n_right: list[int]
    n_tokens: list[int]
    on_true_key: np.ndarray
    n_letters: int


def evaluate_batch(
    checkpoint: Checkpoint, symbols: Sequence[Sequence[str]], most_weights: int = MOST_WEIGHTS
) -> BatchEvaluation:
    """Decodes sources of one length greedily, in parts where the attention of all would not fit.

    Args:
        checkpoint: what decodes.
        symbols: of each source; at least one source.
        most_weights: cross-attention weights that are held at once.

    Raises:
        DeviceError: the device ran out of memory.
    """
    config, task = checkpoint.model.config, checkpoint.task
    known = [task.answer(s) for s in symbols]
    answers = [None if answer is None else [*answer, END] for answer in known]
    limit = min(max(task.max_target_length + 1, *(len(answer or ()) for answer in answers)), config.max_positions)
    each = config.n_decoder_layers * config.n_heads * limit * len(task.frame(symbols[0]))
    at_once = max(1, most_weights // each)
    parts = [
        _evaluate_batch(checkpoint, symbols[i : i + at_once], answers[i : i + at_once], limit)
        for i in range(0, len(symbols), at_once)
    ]
    return BatchEvaluation(
        [output for part in parts for output in part.outputs],
        [hit for part in parts for hit in part.hits],
        [n for part in parts for n in part.n_right],
        [n for part in parts for n in part.n_tokens],
        np.sum([part.on_true_key for part in parts], axis=0),
        sum(part.n_letters for part in parts),
    )


def _evaluate_batch(
    checkpoint: Checkpoint, symbols: Sequence[Sequence[str]], answers: Sequence[list[str] | None], limit: int
) -> BatchEvaluation:
    task = checkpoint.task
    source = [task.source_vocabulary.encode(task.frame(s)) for s in symbols]
    recorder = Recorder(names=("weights",), kinds=("cross",))
    with devices.memory_errors(checkpoint.device):
        ids = torch.tensor(source, device=checkpoint.device)
        decoded = greedy(checkpoint.model, ids, None, max_length=limit, tap=recorder)
        recorded = recorder.gathered("cross", "weights")
    assert recorded is not None
    weights = recorded.cpu().numpy()
    total, n_letters = np.zeros(weights.shape[1:3]), 0
    outputs, hits, n_right = [], [], []
    for i, (row, length) in enumerate(zip(decoded.ids.tolist(), decoded.lengths.tolist(), strict=True)):
        output = task.target_vocabulary.decode(row[:length])
        outputs.append(task.join(output))
        hits.append(output == answers[i])
        n_right.append(sum(a == b for a, b in zip(output, answers[i] or (), strict=False)))
        steps = [(t, key) for t, key in enumerate(task.alignment(symbols[i], length)) if key is not None]
        rows, keys = [t for t, _ in steps], [key for _, key in steps]
        total += weights[i][:, :, rows, keys].sum(-1, dtype=np.float64)
        n_letters += len(steps)
    return BatchEvaluation(outputs, hits, n_right, [len(answer or ()) for answer in answers], total, n_letters)
