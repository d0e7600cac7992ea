"""The interface of a task: text to tokens and back, the true answer, the true alignment, and samples.

A task knows no model and no screen. A new one is one new file in this folder that
defines `TASK`, a subclass of `Task`; the registry in `__init__` finds it.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from transformer_viz.errors import ConfigError, InputError, OptionError, join_names, short_repr
from transformer_viz.language import known, later, say, sentences
from transformer_viz.schema import finite_number, whole_number
from transformer_viz.text_display import character_words
from transformer_viz.vocabulary import END, SPECIAL_TOKENS, START, Vocabulary

Split = Literal["train", "held-out"]
"""The two halves of what a task can draw; no source text is in both."""

MOST_SAMPLES = 1_000_000
"""The most samples of one evaluation."""
_SPLIT_SEED = b"transformer-viz"
JUDGED_STREAM = 77
"""Keeps the texts of an evaluation apart from those of training, which are drawn from [seed, 1..3, …]."""


@dataclass(frozen=True)
class Example:
    """A source text worth trying, and why."""

    text: str
    note: str


class Task(ABC):
    """One mapping from source texts to target texts.

    Attributes:
        about: what a model of this task does, for people: the rest of a sentence that begins with *This model*.
        unknown: what is said of a text that can be read and has no answer; nothing where that says nothing of the text.
        source_vocabulary: what the encoder may read.
        target_vocabulary: what the decoder may write.
        max_length: the most symbols that a source may have.
        max_target_length: the most symbols that an answer may have.
        sources: names of the kinds of texts that `sample` draws and by which a model is judged.
        training_sources: more kinds that `sample` draws, for training only.
        evaluated_lengths: the source lengths that occur, or at which a model of this task is judged.
        natural_lengths: whether texts come in the lengths that they have, and not in lengths that are asked for.
        held_out_share: share of the source texts that training never sees; 0 = texts are drawn afresh, not kept apart.
        all_examples: texts worth trying, of which `examples` may leave some out.
    """

    name: ClassVar[str]
    about: ClassVar[str] = later("turns one text into another")
    unknown: ClassVar[str] = ""
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    max_length: int
    sources: tuple[str, ...]
    training_sources: tuple[str, ...] = ()
    evaluated_lengths: tuple[int, ...]
    all_examples: tuple[Example, ...] = ()
    natural_lengths: bool = False
    held_out_share: float = 0.0

    @property
    def max_target_length(self) -> int:
        """The most symbols that an answer may have; by default as many as the source."""
        return self.max_length

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """The keywords that make this task again, as plain data."""

    @abstractmethod
    def read(self, text: str) -> list[str]:
        """The symbols of a source text.

        Raises:
            InputError: the text is empty, too long, or has a symbol that is not in the vocabulary.
        """

    def symbols(self, text: str) -> list[str]:
        """The symbols of a source text of our own, which may be longer than what a person may type."""
        return self.read(text)

    def read_target(self, text: str) -> list[str]:
        """The symbols of a target text that somebody gives; as `read`, where both sides have the same symbols.

        Raises:
            InputError: as `read`.
        """
        return self.read(text)

    def join(self, tokens: Sequence[str]) -> str:
        """The text that target tokens spell, special tokens left out."""
        return "".join([token for token in tokens if token not in SPECIAL_TOKENS])

    @abstractmethod
    def answer(self, symbols: Sequence[str]) -> list[str] | None:
        """The true target symbols of a source, or None where nobody knows them."""

    def remark(self, symbols: Sequence[str]) -> str:
        """The message about a source that can be read and has no answer; by default `unknown`, whatever the source."""
        return self.unknown

    @abstractmethod
    def alignment(self, symbols: Sequence[str], n_steps: int) -> list[int | None]:
        """For each step, the key index (in the framed source) that it must look at, or None."""

    def examples(self) -> list[Example]:
        """Texts to start from; the first is what the app opens with."""
        return list(self.all_examples)

    @abstractmethod
    def sample(
        self, source: str, length: int | None, count: int, rng: np.random.Generator, split: Split | None = None
    ) -> list[str]:
        """Source texts of the named kind.

        Args:
            source: one of `sources` or `training_sources`.
            length: of exactly so many symbols; None takes them as they come.
            count: how many; fewer come back where there are no more of that length.
            rng: where the randomness comes from.
            split: only texts that training sees, or only texts that it never sees; None = either.
        """

    def check_source(self, source: str) -> None:
        """Raises a ConfigError for a kind of texts that this task does not draw."""
        known = (*self.sources, *self.training_sources)
        if source not in known:
            raise ConfigError(f"source {short_repr(source)} is not known; choose one of {join_names(known)}")

    def texts(self, split: Split | None = None) -> Sequence[str] | None:
        """The texts of a split, each once, where they can be counted; None where they are drawn afresh."""
        return None

    def judged(self, samples: int, seed: int) -> Iterator[tuple[str, str]]:
        """(source, text) of what a model is judged by: never seen in training where `held_out_share` is above 0."""
        rng = np.random.default_rng([seed, JUDGED_STREAM])
        cells = [(length, source) for length in self.evaluated_lengths for source in self.sources]
        for number, (length, source) in enumerate(cells):
            count = samples // len(cells) + (number < samples % len(cells))
            for text in self.sample(source, length, count, rng, "held-out"):
                yield source, text

    def mixed(self, lengths: Sequence[int], rng: np.random.Generator, first: int = 0) -> list[str]:
        """One text for each length, of all sources in turn; of whatever length where lengths are natural."""
        drawn = []
        for i, length in enumerate(lengths, start=first):
            wanted = None if self.natural_lengths else length
            drawn += self.sample(self.sources[i % len(self.sources)], wanted, 1, rng)
        return drawn

    @property
    def judged_by(self) -> Literal["held-out", "fresh", "trained"]:
        """The judged texts: never trained on; drawn anew, so that short ones may have been; or the trained ones."""
        return "held-out" if self.held_out_share > 0 else "fresh"

    def least_samples(self) -> int:
        """The fewest texts that `judged` can be asked for: one for each length and source."""
        return len(self.evaluated_lengths) * len(self.sources)

    def check_samples(self, samples: int, name: str = "samples") -> None:
        """Raises an OptionError unless `judged` can be asked for so many; `name` is the option."""
        least = self.least_samples()
        try:
            whole_number(name, samples, least, MOST_SAMPLES)
        except OptionError as error:
            raise OptionError(f"{error}, at least one for each of {least} kinds and lengths") from error

    def split_key(self, text: str) -> str:
        """The key that decides on which side of the split a text is."""
        return text

    def is_held_out(self, text: str) -> bool:
        """Tells whether training never sees this text. The same on every machine: by a hash, not by a generator."""
        if self.held_out_share == 0:
            return False
        digest = hashlib.blake2b(self.split_key(text).encode(), digest_size=8, key=_SPLIT_SEED).digest()
        return int.from_bytes(digest, "big") < self.held_out_share * 2**64

    def is_in(self, text: str, split: Split | None) -> bool:
        """Tells whether a text belongs to a split; to both where nothing is kept apart."""
        return split is None or self.held_out_share == 0 or self.is_held_out(text) == (split == "held-out")

    def reference(self, text: str) -> str:
        """The true answer as text, with what the vocabulary does not have; '' where nobody knows it."""
        return self.join(self.answer(self.symbols(text)) or [])

    def frame(self, symbols: Sequence[str]) -> list[str]:
        """Frames the symbols of a source by `<start>` and `<end>`."""
        return [START, *symbols, END]

    def symbol_indices(self, framed: Sequence[str]) -> list[int | None]:
        """For each position of a framed (and perhaps padded) source, the index of its symbol or None."""
        end = framed.index(END)
        return [i - 1 if 0 < i < end else None for i in range(len(framed))]


UNKNOWN_CHARACTER = later("Character {place} is {symbol}, which this model does not know.")


def check_symbols(
    symbols: Sequence[str],
    vocabulary: Vocabulary,
    sentence: str,
    possible: str = "",
    words: Callable[[str], str] = character_words,
) -> None:
    """Raises an InputError for the first symbol that is not in a vocabulary.

    Args:
        symbols: of a text.
        vocabulary: what is possible.
        sentence: a template with `place` and `symbol`; in the language of now, as all about a text that somebody has typed.
        possible: a sentence behind it.
        words: puts a symbol into words.
    """
    for place, symbol in enumerate(symbols, start=1):
        if symbol not in vocabulary.ids or symbol in SPECIAL_TOKENS:
            raise InputError(sentences(filter(None, [say(sentence, place=place, symbol=words(symbol)), possible])))


def check_length(length: int, most: int, unit: str = later("characters")) -> None:
    """Raises an InputError for a text of more than `most` units."""
    if length > most:
        raise InputError(
            say(
                "The text has {length} {unit}; this model reads at most {most}. Take {over} out.",
                length=length,
                unit=known(unit),
                most=most,
                over=length - most,
            )
        )


def check_share(share: object) -> None:
    """Raises a ConfigError for an impossible share of held-out texts."""
    finite_number("held_out_share", share, 0, 0.5, ConfigError)
