"""What a change does over many strings, decoded in batches of mixed lengths.

Strings are padded as in training, so that a mistake about padding shows. Prompts are not: those of one length stand together,
since padding before them would move the positions that an edit names.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from transformer_viz import edits as plain_edits
from transformer_viz.decoding.greedy import greedy
from transformer_viz.edits import Edit
from transformer_viz.errors import InputError, OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices, mistakes
from transformer_viz.schema import whole_number
from transformer_viz.tracing.decode_request import most_written
from transformer_viz.tracing.edit_tap import changing_tap, kind_sizes, looks_ahead
from transformer_viz.tracing.framing import framed_sources, padded_batch
from transformer_viz.vocabulary import END

MOST_SAMPLES = 5_000
SAMPLES = 500
"""Strings unless somebody asks for another number."""
COUNTED = 100
"""Strings after which the numbers are those of a fair sample again: within them the short ones are decoded first."""
# Strings of about one length end together, so few rows are decoded beyond their end; more at once take no less time.
_TOGETHER = 25
MOST_LOGITS = 2**26
"""Of what is read first, at once: a prompt has logits at each of its places."""
# Keeps the strings apart from those of training and of `evaluate`.
_STREAM = 78
Answer = list[str] | None
"""The true tokens, the end included; None = nobody knows them."""


@dataclass(frozen=True)
class Effect:
    """Shares of strings.

    Attributes:
        samples: how many strings.
        exact_before: written right without the change, of those whose answer is known; None = of none is it.
        exact_after: likewise with the change.
        changed: written in another way.
    """

    samples: int
    exact_before: float | None
    exact_after: float | None
    changed: float


class Strings:
    """Strings of a model, and what it writes for them unchanged, decoded once.

    Attributes:
        samples: how many.
        answers: of each.
        batches: their numbers, as they are decoded together, in order.
    """

    def __init__(self, model: LoadedModel, ids: Sequence[list[int]], answers: Sequence[Answer], max_length: int | None) -> None:
        """`ids` are what is read of each; `max_length` as in `decode`."""
        reader = model.model
        self._max_length = most_written(model, max_length, (max(map(len, ids)) - 1) * reader.kind.has_prompt)
        self.samples, self.answers = len(ids), answers
        self.batches: list[list[int]] = []
        self._read: list[tuple[Tensor, Tensor]] = []
        for start in range(0, self.samples, COUNTED):
            counted = range(start, min(start + COUNTED, self.samples))
            # Among strings of all lengths most are padded, also where those that are decoded together are equally long.
            width = max(len(ids[i]) for i in counted)
            for batch in _batches(sorted(counted, key=lambda i: len(ids[i])), ids, model):
                rows = [ids[i] for i in batch]
                self.batches.append(batch)
                fits = len(rows[0]) if reader.kind.has_prompt else width
                self._read.append(padded_batch(rows, reader.pad_id, fits, device=model.device))
        self._unchanged: dict[int, list[list[int]]] = {}

    def unchanged(self, model: LoadedModel, batch: int) -> list[list[int]]:
        """What the model writes for the strings of a batch, as ids."""
        if batch not in self._unchanged:
            self._unchanged[batch] = self.decoded(model, batch, (), None)
        return self._unchanged[batch]

    def decoded(
        self, model: LoadedModel, batch: int, edits: tuple[Edit, ...], mistake: mistakes.Mistake | None
    ) -> list[list[int]]:
        """What it writes with a change; an encoder alone, what it puts in the places of mask tokens."""
        reader, (source, is_padding) = model.model, self._read[batch]
        tap, padding = changing_tap(edits, mistake, reader.sizes), is_padding if bool(is_padding.any()) else None
        if not reader.kind.writes:
            filled = reader.encode(source, padding, tap=tap).argmax(-1)
            masked = torch.isin(source, torch.tensor(model.tokenizer.mask_id, device=source.device))
            return [row[own].tolist() for row, own in zip(filled, masked, strict=True)]
        found = greedy(
            reader,
            source,
            padding,
            max_length=self._max_length,
            tap=tap,
            cached=not looks_ahead(edits, mistake),
            log=lambda row, token: None,
        )
        return [row[:n] for row, n in zip(found.ids.tolist(), found.lengths.tolist(), strict=True)]


class FreshStrings(Strings):
    """Fresh strings of a model's task."""

    def __init__(self, model: LoadedModel, samples: int | None = None, seed: int = 0) -> None:
        """Draws `samples` strings of all lengths and sources alike, by default `SAMPLES`; another seed draws others.

        Raises:
            OptionError: an impossible number of strings, or a model that has no task.
        """
        samples, task = SAMPLES if samples is None else whole_number("samples", samples, 1, MOST_SAMPLES), model.task
        if task is None:
            raise OptionError(f"{model.name} has no task that strings could be drawn from; give texts of your own")
        rng = np.random.default_rng([seed, _STREAM])
        symbols = [task.symbols(text) for text in task.mixed(rng.choice(task.evaluated_lengths, samples).tolist(), rng)]
        ids = [task.source_vocabulary.encode(task.frame(each)) for each in symbols]
        answers = [None if (answer := task.answer(each)) is None else [*answer, END] for each in symbols]
        super().__init__(model, ids, answers, None)


class GivenTexts(Strings):
    """A person's texts."""

    def __init__(self, model: LoadedModel, texts: Sequence[str], max_length: int | None = None) -> None:
        """`max_length` is the most tokens to write, as in `decode`.

        Raises:
            OptionError: no texts or too many, or an impossible `max_length`.
            InputError: a text that cannot be read, or one without a mask token for a model that writes nothing.
        """
        if isinstance(texts, str) or not 1 <= len(texts) <= MOST_SAMPLES:
            given = "one text" if isinstance(texts, str) else f"{len(texts)} texts"
            raise OptionError(f"texts are a list of 1 to {MOST_SAMPLES} texts; {given} cannot be decoded")
        ids, tokenizer = framed_sources(model, texts, None).rows, model.tokenizer
        if not model.model.kind.writes:
            _check_fills(model, ids)
        known = (tokenizer.known(text, 0).expected_tokens for text in texts)
        super().__init__(model, ids, [None if tokens is None else list(tokens) for tokens in known], max_length)


def _check_fills(model: LoadedModel, ids: Sequence[list[int]]) -> None:
    """Of an encoder alone: there is something that it fills."""
    tokenizer = model.tokenizer
    if tokenizer.mask_id is None or not model.model.sizes.vocabulary:
        raise OptionError(
            f"{model.name} writes nothing and fills no mask tokens, so that nothing of what it makes could change"
        )
    if any(tokenizer.mask_id not in row for row in ids):
        mask = tokenizer.target_labels([tokenizer.mask_id])[0]
        raise InputError(f"{model.name} writes nothing, it fills mask tokens. Put {mask} into each text.")


def _batches(ordered: Sequence[int], ids: Sequence[list[int]], model: LoadedModel) -> Iterable[list[int]]:
    """Numbers of strings that are decoded together, of these, which are ordered by length."""
    groups = (
        [list(group) for _, group in groupby(ordered, key=lambda i: len(ids[i]))] if model.model.kind.has_prompt else [ordered]
    )
    for group in groups:
        n_logits = len(ids[group[-1]]) * model.model.sizes.vocabulary
        together = max(1, min(_TOGETHER, MOST_LOGITS // max(1, n_logits)))
        for first in range(0, len(group), together):
            yield list(group[first : first + together])


class EffectInProgress:
    """The effect of a change on `strings`, of which `step` decodes a few at a time. For one thread at a time.

    Attributes:
        decoded: how many strings are decoded.
        seconds: that it took.
        found: over those of them that are a fair sample; None before the first `COUNTED`.
    """

    def __init__(
        self, model: LoadedModel, strings: Strings, *, edits: Iterable[Edit | str] = (), mistake: str | None = None
    ) -> None:
        """Decodes nothing yet.

        Raises:
            OptionError: an impossible edit or mistake.
        """
        self._change = plain_edits.read(edits), None if mistake is None else mistakes.named(mistake)
        sizes = model.model.sizes
        plain_edits.check(self._change[0], kind_sizes(sizes), sizes.longest_source, sizes.longest_target)
        # The model is given to each step: what holds a run for long need not hold a model.
        self._strings, self._batch = strings, 0
        self._known = self._exact_before = self._exact_after = self._changed = 0
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

    def step(self, model: LoadedModel) -> None:
        """Decodes the next batch without and with the change; does nothing once all are.

        Raises:
            DeviceError: the device ran out of memory; another step tries again.
        """
        if self.is_done:
            return
        strings, started = self._strings, time.perf_counter()
        with devices.running(model):
            before = strings.unchanged(model, self._batch)
            after = strings.decoded(model, self._batch, *self._change)
        answers = [strings.answers[i] for i in strings.batches[self._batch]]
        self._known += sum(answer is not None for answer in answers)
        self._exact_before += _n_right(model, before, answers)
        self._exact_after += _n_right(model, after, answers)
        self._changed += sum(a != b for a, b in zip(before, after, strict=True))
        self._batch, self.decoded = self._batch + 1, self.decoded + len(before)
        self.seconds += time.perf_counter() - started
        if self.is_done or self.decoded % COUNTED == 0:
            exact = (n / self._known if self._known else None for n in (self._exact_before, self._exact_after))
            self.found = Effect(self.decoded, *exact, self._changed / self.decoded)


def _n_right(model: LoadedModel, written: Sequence[list[int]], answers: Sequence[Answer]) -> int:
    return sum(model.tokenizer.target_labels(ids) == answer for ids, answer in zip(written, answers, strict=True))


def effect(
    checkpoint: LoadedModel,
    texts: Sequence[str] | None = None,
    *,
    edits: Iterable[Edit | str] = (),
    mistake: str | None = None,
    samples: int | None = None,
    seed: int = 0,
    max_length: int | None = None,
) -> Effect:
    """What is written without and with a change, for the same strings in the same batches.

    Args:
        checkpoint: from `load_checkpoint` or `load_model`.
        texts: what is read, at most 5,000; by default fresh strings of the model's task.
        edits: what is changed; positions that a string does not have are passed over.
        mistake: a deliberate mistake (see `model.mistakes`).
        samples: without texts: how many strings, of all lengths and sources alike; None is 500.
        seed: without texts: another seed draws other strings.
        max_length: with texts: the most tokens to write, as in `decode`.

    Raises:
        OptionError: an impossible keyword, or no texts for a model without a task.
        InputError: a text that cannot be read; for an encoder alone, one without a mask token.
        DeviceError: the device ran out of memory.
    """
    if texts is None and max_length is not None:
        raise OptionError("max_length is for texts; what is drawn is written as far as its task goes. Leave it out.")
    if texts is not None and samples is not None:
        raise OptionError("samples says how many strings are drawn, and texts are given; leave one of them out")
    strings = FreshStrings(checkpoint, samples, seed) if texts is None else GivenTexts(checkpoint, texts, max_length)
    running = EffectInProgress(checkpoint, strings, edits=edits, mistake=mistake)
    while not running.is_done:
        running.step(checkpoint)
    assert running.found is not None
    return running.found
