"""What the tasks on strings of letters share: an alphabet, reading with clear refusals, and the samplers.

`reverse`, `copy`, `shift` and `sort` differ in the answer and its alignment only.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer_viz.errors import ConfigError, InputError, join_names, short_repr
from transformer_viz.schema import whole_number
from transformer_viz.tasks.strings import SAMPLERS
from transformer_viz.tasks.task import Example, Split, Task, check_length, check_share, check_symbols
from transformer_viz.vocabulary import Vocabulary

PRINTABLE_ASCII = "".join(chr(code) for code in range(32, 127))
LOWER_CASE = "abcdefghijklmnopqrstuvwxyz"
_ROUNDS = 50
# With `<start>` and `<end>` as long as what a model reads by default.
_LONGEST = 510


class Letters(Task):
    """A mapping from strings to strings, letter by letter.

    Args:
        alphabet: every symbol that may occur.
        max_length: the most symbols that a source may have.
        trained_lengths: the shortest and the longest source that the model is trained on and judged by.
        held_out_share: share of all strings that are kept out of training.
    """

    sources = tuple(SAMPLERS)

    def __init__(
        self,
        alphabet: str = LOWER_CASE,
        max_length: int = 32,
        trained_lengths: Sequence[int] = (1, 20),
        held_out_share: float = 0.1,
    ) -> None:
        if not isinstance(alphabet, str) or not alphabet or len(set(alphabet)) != len(alphabet):
            raise ConfigError(f"alphabet={short_repr(alphabet)} is not possible; give at least one symbol, each of them once")
        whole_number("max_length", max_length, 1, _LONGEST, ConfigError)
        least, most = trained_lengths if len(trained_lengths) == 2 else (0, 0)
        if not 1 <= least <= most <= max_length:
            raise ConfigError(
                f"trained_lengths={short_repr(trained_lengths)} is not possible; give two numbers from 1 to {max_length}"
            )
        check_share(held_out_share)
        self.alphabet = alphabet
        self.max_length = max_length
        self.evaluated_lengths = tuple(range(least, most + 1))
        self.held_out_share = held_out_share
        self.source_vocabulary = self.target_vocabulary = Vocabulary.of(alphabet)

    def options(self) -> dict[str, Any]:
        lengths = [self.evaluated_lengths[0], self.evaluated_lengths[-1]]
        options: dict[str, Any] = {"alphabet": self.alphabet, "max_length": self.max_length, "trained_lengths": lengths}
        return {**options, "held_out_share": self.held_out_share}

    def read(self, text: str) -> list[str]:
        return self._read(text, self.max_length)

    def read_target(self, text: str) -> list[str]:
        return self._read(text, self.max_target_length)

    def _read(self, text: str, most: int) -> list[str]:
        if not text:
            raise InputError(f"The text is empty. Type 1 to {most} characters: {self.possible()}.")
        possible = f"It knows {self.possible()}. Take it out or choose another model."
        check_symbols(text, self.source_vocabulary, "Character {} is {}, which this model does not know. ", possible)
        check_length(len(text), most)
        return list(text)

    def symbols(self, text: str) -> list[str]:
        return list(text)

    def possible(self) -> str:
        """The alphabet in words."""
        if self.alphabet == PRINTABLE_ASCII:
            return "the 95 printable ASCII characters (A-Z, a-z, 0-9, punctuation and the space)"
        if self.alphabet == LOWER_CASE:
            return "the letters a to z"
        return f"{len(self.alphabet)} symbols: {join_names(self.alphabet)}"

    def examples(self) -> list[Example]:
        known = [
            example
            for example in self.all_examples
            if len(example.text) <= self.max_length and set(example.text) <= set(self.alphabet)
        ]
        return known or [Example(self.alphabet[: min(8, self.max_length)], "the first symbols of the alphabet")]

    def sample(
        self, source: str, length: int | None, count: int, rng: np.random.Generator, split: Split | None = None
    ) -> list[str]:
        self.check_source(source)
        if length is None:
            lengths = rng.choice(self.evaluated_lengths, size=count)
            return [text for n in lengths for text in self.sample(source, int(n), 1, rng, split)]
        drawn: list[str] = []
        # Among very short strings there may be none on the wanted side: then fewer come back.
        for _ in range(_ROUNDS):
            more = SAMPLERS[source](self.alphabet, length, count - len(drawn), rng)
            drawn += [text for text in more if self.is_in(text, split)]
            if len(drawn) == count:
                break
        return drawn
