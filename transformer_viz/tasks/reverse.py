"""Word reversal, letter by letter (B. Etienne 2024).

Worked example: `hello` is framed as `<start> h e l l o <end>`. The answer is `olleh`, so
step 0 must write `o`, which stands at key index 5; step 4 must write `h` at key index 1;
step 5 writes `<end>` and has no true key. The true keys 5 4 3 2 1 are the anti-diagonal.
"""

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer_viz.errors import ConfigError, InputError, listed
from transformer_viz.tasks.strings import SAMPLERS
from transformer_viz.tasks.task import Example, Task
from transformer_viz.vocabulary import SPECIAL_TOKENS, Vocabulary

PRINTABLE_ASCII = "".join(chr(code) for code in range(32, 127))
LOWER_CASE = "abcdefghijklmnopqrstuvwxyz"

_EXAMPLES = (
    Example("reversethis", "the anti-diagonal, letter by letter"),
    Example("Mississippi 2026!", "repeated letters: only their places tell them apart"),
    Example("aaaaaaaa", "eight equal letters: the model can only count"),
    Example("never odd or even", "nearly a palindrome"),
    Example("<b>$x^2$</b> & *you*", "markup is just text here"),
    Example("abcdefghijklmnopqrstuvwxyz012345", "32 symbols, the longest possible"),
)


class Reverse(Task):
    """Writes the source backwards.

    Args:
        alphabet: every symbol that may occur.
        max_length: the most symbols that a source may have.
        trained_lengths: the shortest and the longest source that the model is trained on and judged by.
    """

    name = "reverse"
    sources = tuple(SAMPLERS)

    def __init__(
        self,
        alphabet: str = PRINTABLE_ASCII,
        max_length: int = 32,
        trained_lengths: Sequence[int] = (1, 32),
    ) -> None:
        if not isinstance(alphabet, str) or not alphabet or len(set(alphabet)) != len(alphabet):
            raise ConfigError(f"alphabet={alphabet!r} is not possible; give at least one symbol, each of them once")
        if not isinstance(max_length, int) or not 1 <= max_length <= 500:
            raise ConfigError(f"max_length={max_length!r} is not possible; it is a whole number from 1 to 500")
        least, most = trained_lengths if len(trained_lengths) == 2 else (0, 0)
        if not 1 <= least <= most <= max_length:
            raise ConfigError(f"trained_lengths={trained_lengths!r} is not possible; give two numbers from 1 to {max_length}")
        self.alphabet = alphabet
        self.max_length = max_length
        self.evaluated_lengths = tuple(range(least, most + 1))
        self.source_vocabulary = self.target_vocabulary = Vocabulary.of(alphabet)

    def options(self) -> dict[str, Any]:
        lengths = [self.evaluated_lengths[0], self.evaluated_lengths[-1]]
        return {"alphabet": self.alphabet, "max_length": self.max_length, "trained_lengths": lengths}

    def read(self, text: str) -> list[str]:
        if not text:
            raise InputError(f"The text is empty. Type 1 to {self.max_length} characters: {self.possible()}.")
        for position, symbol in enumerate(text, start=1):
            if symbol not in self.source_vocabulary or symbol in SPECIAL_TOKENS:
                raise InputError(
                    f"Character {position} is {describe(symbol)}, which this model does not know. "
                    f"It knows {self.possible()}. Take it out or choose another model."
                )
        if len(text) > self.max_length:
            raise InputError(
                f"The text has {len(text)} characters; this model reads at most {self.max_length}. "
                f"Take {len(text) - self.max_length} out."
            )
        return list(text)

    def possible(self) -> str:
        """The alphabet in words."""
        if self.alphabet == PRINTABLE_ASCII:
            return "the 95 printable ASCII characters (A-Z, a-z, 0-9, punctuation and the space)"
        if self.alphabet == LOWER_CASE:
            return "the letters a to z"
        return f"{len(self.alphabet)} symbols: {listed(self.alphabet)}"

    def join(self, tokens: Sequence[str]) -> str:
        return "".join(token for token in tokens if token not in SPECIAL_TOKENS)

    def answer(self, symbols: Sequence[str]) -> list[str]:
        return list(reversed(symbols))

    def alignment(self, n_symbols: int, n_steps: int) -> list[int | None]:
        # `<start>` stands at key index 0, so the last symbol is key number n_symbols.
        return [n_symbols - t if t < n_symbols else None for t in range(n_steps)]

    def examples(self) -> list[Example]:
        known = [example for example in _EXAMPLES if self._knows(example.text)]
        return known or [Example(self.alphabet[: min(8, self.max_length)], "the first symbols of the alphabet")]

    def _knows(self, text: str) -> bool:
        return len(text) <= self.max_length and set(text) <= set(self.alphabet)

    def sample(self, source: str, length: int, count: int, rng: np.random.Generator) -> list[str]:
        if source not in SAMPLERS:
            raise ConfigError(f"source {source!r} is not known; choose one of {listed(SAMPLERS)}")
        return SAMPLERS[source](self.alphabet, length, count, rng)


def describe(symbol: str) -> str:
    """A character by sight where that is safe, by name and by code point."""
    name = unicodedata.name(symbol, "no name")
    code = f"U+{ord(symbol):04X}"
    if unicodedata.combining(symbol):
        return f"the combining mark {name} ({code})"
    # A control or direction character would act on the message instead of showing in it.
    return f"“{symbol}” ({name}, {code})" if symbol.isprintable() else f"{name} ({code})"


TASK = Reverse
