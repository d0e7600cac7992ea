"""What a change does over many strings, decoded in padded batches of mixed lengths."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

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
COUNTED = 100
"""Strings after which the numbers are those of a fair sample again: within them the short ones are decoded first."""
# Strings of about one length end together, so few rows are decoded beyond their end; more at once take no less time.
_TOGETHER = 25
# Keeps the strings apart from those of training and of `evaluate`.
_STREAM = 78


@dataclass(frozen=True)
class Effect:
    """Shares of strings; `changed` is how many came out differently."""

    samples: int
    exact_before: float
    exact_after: float
    changed: float


class FreshStrings:
    """Fresh strings of a checkpoint, and what it writes for them unchanged, decoded once.

    Attributes:
        samples: how many.
        batches: their numbers, as they are decoded together, in order.
    """

    def __init__(self, checkpoint: Checkpoint, samples: int = 500, seed: int = 0) -> None:
        """Draws `samples` strings of all lengths and sources alike; another seed draws others.

        Raises:
            OptionError: an impossible number of strings.
        """
        if isinstance(samples, bool) or not isinstance(samples, int) or not 1 <= samples <= MOST_SAMPLES:
            raise OptionError(f"samples={samples!r} is not possible; it is a whole number from 1 to {MOST_SAMPLES}")
        task, rng = checkpoint.task, np.random.default_rng([seed, _STREAM])
        symbols = [task.symbols(text) for text in task.mixed(rng.choice(task.evaluated_lengths, samples).tolist(), rng)]
        self.samples = samples
        self.answers = [[*(task.answer(each) or []), END] for each in symbols]
        ids = [task.source_vocabulary.encode(task.frame(each)) for each in symbols]
        self.batches: list[list[int]] = []
        self._sources: list[Tensor] = []
        for start in range(0, samples, COUNTED):
            end = min(start + COUNTED, samples)
            # Among strings of all lengths most are padded, also where those that are decoded together are equally long.
            sources = padded(ids[start:end])
            ordered = sorted(range(start, end), key=lambda i: len(ids[i]))
            for first in range(0, len(ordered), _TOGETHER):
                self.batches.append(ordered[first : first + _TOGETHER])
                self._sources.append(sources[[i - start for i in self.batches[-1]]])
        self._unchanged: dict[int, list[list[str]]] = {}

    def unchanged(self, checkpoint: Checkpoint, batch: int) -> list[list[str]]:
        """What the checkpoint writes for the strings of a batch."""
        if batch not in self._unchanged:
            self._unchanged[batch] = self.decoded(checkpoint, batch, (), None)
        return self._unchanged[batch]

    def decoded(
        self, checkpoint: Checkpoint, batch: int, edits: tuple[Edit, ...], mistake: mistakes.Mistake | None
    ) -> list[list[str]]:
        """What it writes with a change."""
        task, model = checkpoint.task, checkpoint.model
        source = self._sources[batch].to(checkpoint.device)
        padding = masks.padding(source, PAD_ID)
        found = greedy(
            model,
            source,
            padding if bool(padding.any()) else None,
            max_length=min(task.max_target_length + 1, model.config.max_positions),
            tap=changing_tap(edits, mistake, model.sizes),
            cached=not looks_ahead(edits, mistake),
        )
        lengths = found.lengths.tolist()
        return [task.target_vocabulary.decode(row[:n]) for row, n in zip(found.ids.tolist(), lengths, strict=True)]


class EffectInProgress:
    """The effect of a change on `strings`, of which `step` decodes a few at a time. For one thread at a time.

    Attributes:
        decoded: how many strings are decoded.
        seconds: that it took.
        found: over those of them that are a fair sample; None before the first `COUNTED`.
    """

    def __init__(
        self, checkpoint: Checkpoint, strings: FreshStrings, *, edits: Iterable[Edit | str] = (), mistake: str | None = None
    ) -> None:
        """Decodes nothing yet.

        Raises:
            OptionError: an impossible edit or mistake.
        """
        self._change = plain_edits.read(edits), None if mistake is None else mistakes.named(mistake)
        config = checkpoint.model.config
        plain_edits.check(self._change[0], kind_sizes(checkpoint.model.sizes), config.max_positions, config.max_positions)
        self._checkpoint, self._strings, self._batch = checkpoint, strings, 0
        self._exact_before = self._exact_after = self._changed = 0
        self.decoded, self.seconds = 0, 0.0
        self.found: Effect | None = None

    @property
    def samples(self) -> int:
        """How many strings there are."""
        return self._strings.samples

    @property
    def is_done(self) -> bool:
        """Whether all strings are decoded."""
        return self.decoded == self.samples

    def step(self) -> None:
        """Decodes the next batch without and with the change; does nothing once all are.

        Raises:
            DeviceError: the device ran out of memory; another step tries again.
        """
        if self.is_done:
            return
        checkpoint, strings, started = self._checkpoint, self._strings, time.perf_counter()
        with devices.memory_errors(checkpoint.device), devices.few_threads(checkpoint.device, checkpoint.n_parameters):
            before = strings.unchanged(checkpoint, self._batch)
            after = strings.decoded(checkpoint, self._batch, *self._change)
        answers = [strings.answers[i] for i in strings.batches[self._batch]]
        self._exact_before += _equal(before, answers)
        self._exact_after += _equal(after, answers)
        self._changed += len(before) - _equal(before, after)
        self._batch, self.decoded = self._batch + 1, self.decoded + len(before)
        self.seconds += time.perf_counter() - started
        if self.is_done or self.decoded % COUNTED == 0:
            n = self.decoded
            self.found = Effect(n, self._exact_before / n, self._exact_after / n, self._changed / n)


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
        DeviceError: the device ran out of memory.
    """
    running = EffectInProgress(checkpoint, FreshStrings(checkpoint, samples, seed), edits=edits, mistake=mistake)
    while not running.is_done:
        running.step()
    assert running.found is not None
    return running.found


def _equal(given: Sequence[list[str]], wanted: Sequence[list[str]]) -> int:
    return sum(a == b for a, b in zip(given, wanted, strict=True))
