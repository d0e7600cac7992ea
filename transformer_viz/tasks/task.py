"""What a task is: text to tokens and back, the true answer, the true alignment, and samples.

A task knows no model and no screen. A new one is one new file in this folder that
defines `TASK`, a subclass of `Task`; the registry in `__init__` finds it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from transformer_viz.vocabulary import END, START, Vocabulary


@dataclass(frozen=True)
class Example:
    """A source text worth trying, and why."""

    text: str
    note: str


class Task(ABC):
    """One mapping from source texts to target texts.

    Attributes:
        source_vocabulary: what the encoder may read.
        target_vocabulary: what the decoder may write.
        max_length: the most symbols that a source may have.
        sources: names of the kinds of strings that `sample` draws.
        evaluated_lengths: the source lengths at which a model of this task is judged.
    """

    name: ClassVar[str]
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    max_length: int
    sources: tuple[str, ...]
    evaluated_lengths: tuple[int, ...]

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """The keywords that make this task again, as plain data."""

    @abstractmethod
    def read(self, text: str) -> list[str]:
        """The symbols of a source text.

        Raises:
            InputError: the text is empty, too long, or has a symbol that is not in the vocabulary.
        """

    def read_target(self, text: str) -> list[str]:
        """The symbols of a target text that somebody gives; as `read`, where both sides have the same symbols.

        Raises:
            InputError: as `read`.
        """
        return self.read(text)

    @abstractmethod
    def join(self, tokens: Sequence[str]) -> str:
        """The text that target tokens spell, special tokens left out."""

    @abstractmethod
    def answer(self, symbols: Sequence[str]) -> list[str]:
        """The true target symbols of a source."""

    @abstractmethod
    def alignment(self, n_symbols: int, n_steps: int) -> list[int | None]:
        """For each step, the key index (in the framed source) that it must look at, or None."""

    @abstractmethod
    def examples(self) -> list[Example]:
        """Texts to start from; the first is what the app opens with."""

    @abstractmethod
    def sample(self, source: str, length: int, count: int, rng: np.random.Generator) -> list[str]:
        """`count` source texts of exactly `length` symbols, drawn from the named source."""

    def frame(self, symbols: Sequence[str]) -> list[str]:
        """What the encoder reads: the symbols between `<start>` and `<end>`."""
        return [START, *symbols, END]

    def letters(self, framed: Sequence[str]) -> list[int | None]:
        """For each position of a framed (and perhaps padded) source, the index of its symbol or None."""
        end = framed.index(END)
        return [i - 1 if 0 < i < end else None for i in range(len(framed))]
