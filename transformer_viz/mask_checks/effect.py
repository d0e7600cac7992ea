"""What a change does over many strings, decoded in padded batches of mixed lengths."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from transformer_viz import edits as plain_edits
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.decoding.greedy import greedy
from transformer_viz.edits import Edit
from transformer_viz.errors import OptionError
from transformer_viz.model import devices, masks, mistakes
from transformer_viz.tracing.edit_tap import changing_tap, kind_sizes, looks_ahead
from transformer_viz.tracing.framing import padded
from transformer_viz.vocabulary import END, PAD_ID

MOST_SAMPLES = 5_000
_BATCH = 100
# Keeps the strings apart from those of training and of `evaluate`.
_STREAM = 78


@dataclass(frozen=True)
class Effect:
    """Shares of strings; `changed` is how many came out differently."""

    samples: int
    exact_before: float
    exact_after: float
    changed: float


def effect(
    checkpoint: Checkpoint,
    *,
    edits: Iterable[Edit | str] = (),
    mistake: str | None = None,
    samples: int = 500,
    seed: int = 0,
) -> Effect:
    """Exact match without and with a change, on the same fresh strings in the same padded batches.

    Args:
        checkpoint: from `load_checkpoint`.
        edits: what is changed; positions that a string does not have are passed over.
        mistake: a deliberate mistake (see `model.mistakes`).
        samples: how many strings, of all lengths and sources alike.
        seed: another seed draws other strings.

    Raises:
        OptionError: an impossible keyword.
    """
    if isinstance(samples, bool) or not isinstance(samples, int) or not 1 <= samples <= MOST_SAMPLES:
        raise OptionError(f"samples={samples!r} is not possible; it is a whole number from 1 to {MOST_SAMPLES}")
    read = plain_edits.read(edits)
    made = None if mistake is None else mistakes.named(mistake)
    config, task = checkpoint.model.config, checkpoint.task
    plain_edits.check(read, kind_sizes(config), config.max_positions, config.max_positions)
    rng = np.random.default_rng([seed, _STREAM])
    texts = task.mixed(rng.choice(task.evaluated_lengths, samples).tolist(), rng)
    before: list[list[str]] = []
    after: list[list[str]] = []
    with devices.memory_errors(checkpoint.device), devices.few_threads(checkpoint.device, checkpoint.n_parameters):
        for start in range(0, samples, _BATCH):
            batch = texts[start : start + _BATCH]
            before += _outputs(checkpoint, batch, (), None)
            after += _outputs(checkpoint, batch, read, made)
    answers = [[*(task.answer(task.symbols(text)) or []), END] for text in texts]
    return Effect(
        samples,
        _equal(before, answers) / samples,
        _equal(after, answers) / samples,
        (samples - _equal(before, after)) / samples,
    )


def _outputs(
    checkpoint: Checkpoint, texts: list[str], edits: tuple[Edit, ...], mistake: mistakes.Mistake | None
) -> list[list[str]]:
    task, model = checkpoint.task, checkpoint.model
    source = padded([task.source_vocabulary.encode(task.frame(task.symbols(text))) for text in texts]).to(checkpoint.device)
    padding = masks.padding(source, PAD_ID)
    decoded = greedy(
        model,
        source,
        padding if bool(padding.any()) else None,
        max_length=min(task.max_target_length + 1, model.config.max_positions),
        tap=changing_tap(edits, mistake, model.config),
        cached=not looks_ahead(edits, mistake),
    )
    lengths = decoded.lengths.tolist()
    return [task.target_vocabulary.decode(row[:n]) for row, n in zip(decoded.ids.tolist(), lengths, strict=True)]


def _equal(given: list[list[str]], wanted: list[list[str]]) -> int:
    return sum(a == b for a, b in zip(given, wanted, strict=True))
