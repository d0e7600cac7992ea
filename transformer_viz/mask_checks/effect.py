"""`measure_effect`: how an edit or mistake changes the outputs for many strings, decoded in batches of mixed lengths.

Strings are padded as in training, so that a mistake about padding shows. Prompts are batched by length and not padded, since
padding before them would move the positions that an edit names.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from transformer_viz import batches
from transformer_viz import edits as plain_edits
from transformer_viz.batches import Text, answer_of, compare_with_answer, drawn_texts, run_batch
from transformer_viz.decoding.token_batch import moves_behind_padding
from transformer_viz.edits import Edit
from transformer_viz.errors import InputError, OptionError
from transformer_viz.loaded_model import LoadedModel, check_loaded
from transformer_viz.model import devices, mistakes
from transformer_viz.schema import whole_number
from transformer_viz.tracing.edit_tap import changing_tap, check_edits, looks_ahead
from transformer_viz.tracing.tokenize_batch import framed_sources, most_written

MOST_SAMPLES = 5_000
SAMPLES = 500
"""The default number of strings."""
COUNTED = 100
"""Results are a fair sample after every so many strings, within which short strings are decoded first."""
_AT_ONCE = COUNTED // 4
# Keeps the strings apart from those of training and of `evaluate`.
_STREAM = 78


@dataclass(frozen=True)
class Effect:
    """Shares of strings.

    Attributes:
        samples: how many strings.
        exact_before: written right without the change, of those whose answer is known; None = of none is it.
        exact_after: written right with the change, of the same texts.
        changed: written in another way.
    """

    samples: int
    exact_before: float | None
    exact_after: float | None
    changed: float


class DecodedTexts:
    """Texts of a model in batches, and what it writes for them unchanged, decoded once.

    Attributes:
        samples: how many.
        batches: texts that are decoded together, in order.
    """

    def __init__(self, model: LoadedModel, texts: Sequence[Text]) -> None:
        self.samples, self.batches, self._widths = len(texts), list[list[Text]](), list[int]()
        for start in range(0, self.samples, COUNTED):
            counted = texts[start : start + COUNTED]
            self.batches += batches.batches(model, counted, at_once=_AT_ONCE, pad_prompts=False)
            # Among strings of all lengths most are padded, also where those that are decoded together are equally long.
            width = 0 if moves_behind_padding(model.network) else max(len(text.ids) for text in counted)
            self._widths += [width] * (len(self.batches) - len(self._widths))
        self._unchanged: dict[int, list[list[int]]] = {}

    def decode(
        self, model: LoadedModel, batch: int, edits: tuple[Edit, ...] = (), mistake: mistakes.Mistake | None = None
    ) -> list[list[int]]:
        """The ids that the model writes for a batch with a change; an encoder alone, those in the places of mask tokens."""
        if batch in self._unchanged and not edits and mistake is None:
            return self._unchanged[batch]
        tap, cached = changing_tap(edits, mistake, model.network.sizes), not looks_ahead(edits, mistake)
        written = run_batch(model, self.batches[batch], tap=tap, cached=cached, width=self._widths[batch]).written
        if tap is None:
            self._unchanged[batch] = written
        return written


def fresh_strings(model: LoadedModel, samples: int | None = None, seed: int = 0) -> DecodedTexts:
    """Draws `samples` strings of a model's task, of all lengths and sources alike, by default `SAMPLES`.

    Raises:
        OptionError: an impossible number of strings, or a model that has no task.
    """
    n, task = SAMPLES if samples is None else whole_number("samples", samples, 1, MOST_SAMPLES), model.task
    rng = np.random.default_rng([seed, _STREAM])
    texts = [] if task is None else task.mixed(rng.choice(task.evaluated_lengths, n).tolist(), rng)
    return DecodedTexts(model, list(drawn_texts(model, texts)))


def texts_from_person(model: LoadedModel, texts: Sequence[str], max_length: int | None = None) -> DecodedTexts:
    """A person's texts; `max_length` is the most tokens to write, as in `decode`.

    Raises:
        OptionError: no texts or too many, or an impossible `max_length`.
        InputError: a text that cannot be read, or one without a mask token for a model that writes nothing.
    """
    check_loaded(model)
    if isinstance(texts, str) or not 1 <= len(texts) <= MOST_SAMPLES:
        given = "one text" if isinstance(texts, str) else f"{len(texts)} texts"
        raise OptionError(f"texts must be a list of 1 to {MOST_SAMPLES} texts, not {given}")
    rows, tokenizer, kind = framed_sources(model, texts), model.tokenizer, model.network.kind
    if not kind.writes:
        if tokenizer.mask_id is None or not model.network.sizes.vocabulary:
            raise OptionError(f"{model.name} neither writes nor fills mask tokens, so there is no output that could change")
        if any(tokenizer.mask_id not in row for row in rows):
            mask_token = tokenizer.target_labels([tokenizer.mask_id])[0]
            raise InputError(f"{model.name} fills mask tokens. Put {mask_token} into each text.")
    limit = most_written(model, max_length, max(map(len, rows)))
    answers = [answer_of(model, tokenizer.task_answer(text, 0)) for text in texts]
    return DecodedTexts(model, [Text(i, ids, limit, answer) for i, (ids, answer) in enumerate(zip(rows, answers, strict=True))])


class EffectInProgress:
    """The effect of a change on `strings`, of which `step` decodes a few at a time. For one thread at a time.

    Attributes:
        decoded: how many strings are decoded.
        seconds: that it took.
        found: over those of them that are a fair sample; None before the first `COUNTED`.
    """

    def __init__(
        self, model: LoadedModel, strings: DecodedTexts, *, edits: Iterable[Edit | str] = (), mistake: str | None = None
    ) -> None:
        """Decodes nothing yet.

        Raises:
            OptionError: an impossible edit or mistake.
        """
        self._change = plain_edits.read(edits), None if mistake is None else mistakes.named(mistake)
        sizes = model.network.sizes
        check_edits(self._change[0], sizes, sizes.longest_source, sizes.longest_target)
        # The model is given to each step: what holds a run for long need not hold a model.
        self._strings, self._batch = strings, 0
        self._known = self._exact_before = self._exact_after = self._changed = 0
        self.decoded, self.seconds = 0, 0.0
        self.found: Effect | None = None

    @property
    def samples(self) -> int:
        """The number of strings."""
        return self._strings.samples

    @property
    def is_done(self) -> bool:
        """Tells whether all strings are decoded."""
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
            before = strings.decode(model, self._batch)
            after = strings.decode(model, self._batch, *self._change)
        for text, a, b in zip(strings.batches[self._batch], before, after, strict=True):
            self._known += text.answer.tokens is not None
            self._exact_before += compare_with_answer(model, text.answer, a).is_exact
            self._exact_after += compare_with_answer(model, text.answer, b).is_exact
            self._changed += a != b
        self._batch, self.decoded = self._batch + 1, self.decoded + len(before)
        self.seconds += time.perf_counter() - started
        if self.is_done or self.decoded % COUNTED == 0:
            exact = (n / self._known if self._known else None for n in (self._exact_before, self._exact_after))
            self.found = Effect(self.decoded, *exact, self._changed / self.decoded)


def measure_effect(
    model: LoadedModel,
    texts: Sequence[str] | None = None,
    *,
    edits: Iterable[Edit | str] = (),
    mistake: str | None = None,
    samples: int | None = None,
    seed: int = 0,
    max_length: int | None = None,
) -> Effect:
    """Decodes the same strings with and without a change, and counts right and changed outputs.

    Args:
        model: from `load_checkpoint` or `load_model`.
        texts: up to 5,000 source texts; by default fresh strings of the model's task.
        edits: the changes, as in `decode`; positions that a string does not have are ignored.
        mistake: a deliberate mistake (see `model.mistakes`).
        samples: without texts: how many strings, evenly from all lengths and sources; None is 500.
        seed: without texts: another seed draws other strings.
        max_length: with texts: the most tokens to write, as in `decode`.

    Returns:
        The shares of right and of changed outputs.

    Raises:
        OptionError: an impossible keyword, or no texts for a model without a task.
        InputError: a text that cannot be read; for an encoder alone, one without a mask token.
        DeviceError: the device ran out of memory.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> found = tv.measure_effect(model, ["hello", "ab"], edits=["cross.1.1:zero"])
        >>> found.samples
        2
    """
    if texts is None and max_length is not None:
        raise OptionError(
            "max_length works only with texts of your own; the task decides the length of texts that are drawn. Leave it out."
        )
    if texts is not None and samples is not None:
        raise OptionError("give either texts, or samples for texts that are drawn")
    strings = fresh_strings(model, samples, seed) if texts is None else texts_from_person(model, texts, max_length)
    running = EffectInProgress(model, strings, edits=edits, mistake=mistake)
    while not running.is_done:
        running.step(model)
    assert running.found is not None
    return running.found
