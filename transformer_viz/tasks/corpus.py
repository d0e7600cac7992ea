"""The base of tasks on data: vocabularies, the split, samples; and of those on a finite list of pairs the answers.

A trained checkpoint brings its vocabularies along, so that it can be used where the data is not.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from transformer_viz.errors import ConfigError
from transformer_viz.tasks.task import JUDGED_STREAM, Split, Task, check_share
from transformer_viz.vocabulary import SPECIAL_TOKENS, Vocabulary

Vocabularies = tuple[Vocabulary, Vocabulary]
Pair = tuple[tuple[str, ...], tuple[str, ...]]
"""Source symbols and target symbols."""


class DataTask(Task):
    """A task whose vocabularies come from data.

    Args:
        vocabularies: source and target, of a checkpoint that was trained before; None makes them from the data.
        held_out_share: share of all texts that are kept out of training.
    """

    natural_lengths = True

    def __init__(self, vocabularies: Vocabularies | None = None, held_out_share: float = 0.1) -> None:
        check_share(held_out_share)
        self.held_out_share = held_out_share
        self.source_vocabulary, self.target_vocabulary = vocabularies or self.make_vocabularies()

    def options(self) -> dict[str, Any]:
        return {"held_out_share": self.held_out_share}

    @abstractmethod
    def make_vocabularies(self) -> Vocabularies:
        """The vocabularies of the source and of the target."""


class DrawnTask(DataTask):
    """A task whose texts are drawn until enough fit.

    Attributes:
        rounds: how often texts are drawn, before fewer come back than were wanted.
    """

    rounds: ClassVar[int] = 50

    @abstractmethod
    def draw(self, source: str, length: int | None, count: int, missing: int, rng: np.random.Generator) -> Iterator[str]:
        """Some texts of the named kind, of any length, where `count` of a length are wanted and so many are missing yet."""

    def is_clear(self, text: str) -> bool:
        """Tells whether a text has one meaning alone. Others are not used."""
        return True

    def sample(
        self, source: str, length: int | None, count: int, rng: np.random.Generator, split: Split | None = None
    ) -> list[str]:
        self.check_source(source)
        drawn: list[str] = []
        for _ in range(self.rounds * (1 + (length is not None))):
            for text in self.draw(source, length, count, count - len(drawn), rng):
                fits = length is None or length == len(self.symbols(text))
                if fits and len(drawn) < count and self.is_clear(text) and self.is_in(text, split):
                    drawn.append(text)
            if len(drawn) == count:
                break
        return drawn

    def judged(self, samples: int, seed: int) -> Iterator[tuple[str, str]]:
        """Each text at most once: some are so few that the same mistake would count again and again."""
        rng = np.random.default_rng([seed, JUDGED_STREAM])
        for number, source in enumerate(self.sources):
            count = samples // len(self.sources) + (number < samples % len(self.sources))
            yield from ((source, text) for text in dict.fromkeys(self.sample(source, None, count, rng, "held-out")))

    def least_samples(self) -> int:
        return len(self.sources)


class Corpus(DataTask):
    """A mapping that is known by its pairs."""

    @abstractmethod
    def pairs(self) -> Mapping[str, Pair]:
        """Source text -> symbols of source and answer.

        Raises:
            ConfigError: the package that holds the data is not installed.
        """

    def make_vocabularies(self) -> Vocabularies:
        """Every symbol that occurs, in alphabetical order, so that the same data makes the same ids."""
        sides = zip(*self.pairs().values(), strict=True)
        source, target = (Vocabulary.of(sorted({symbol for row in side for symbol in row})) for side in sides)
        return source, target

    @cached_property
    def evaluated_lengths(self) -> tuple[int, ...]:
        return tuple(sorted({len(self.pairs()[text][0]) for text in self.texts("held-out")}))

    def answer(self, symbols: Sequence[str]) -> list[str] | None:
        try:
            pair = self.pairs().get(self.spell(symbols))
        except ConfigError:  # the data is not installed: nobody knows
            return None
        return list(pair[1]) if pair else None

    def spell(self, symbols: Sequence[str]) -> str:
        """The source text of source symbols."""
        return "".join(symbols)

    def sample(
        self, source: str, length: int | None, count: int, rng: np.random.Generator, split: Split | None = None
    ) -> list[str]:
        self.check_source(source)
        texts = [text for text in self.texts(split) if length is None or len(self.pairs()[text][0]) == length]
        return [texts[i] for i in rng.integers(len(texts), size=count)] if texts else []

    def judged(self, samples: int, seed: int) -> Iterator[tuple[str, str]]:
        """Yields all held-out texts, or as many of them as are asked for, each at most once."""
        texts = self.texts("held-out")
        rng = np.random.default_rng([seed, JUDGED_STREAM])
        for i in rng.permutation(len(texts))[:samples]:
            yield self.sources[0], texts[i]

    def least_samples(self) -> int:
        return 1

    def texts(self, split: Split | None = None) -> list[str]:
        return self._texts[split]

    @cached_property
    def _texts(self) -> dict[Split | None, list[str]]:
        splits: tuple[Split | None, ...] = (None, "train", "held-out")
        return {split: [text for text in self.pairs() if self.is_in(text, split)] for split in splits}


def spelled(tokens: Sequence[str]) -> str:
    """Tokens with spaces between them, special tokens left out."""
    return " ".join([token for token in tokens if token not in SPECIAL_TOKENS])


def need(module: str, package: str, task: str) -> ModuleType:
    """Imports what a task's data comes from.

    Raises:
        ConfigError: it is not installed; the message says how to install it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"task {task!r} takes its data from the package {package}, which is not installed. "
            f"Install it with: pip install {package}"
        ) from error
