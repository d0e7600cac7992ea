"""The base of tasks on strings of letters: an alphabet, reading with clear refusals, and the samplers.

`reverse`, `copy`, `shift` and `sort` differ in the answer and its alignment only. Strings are uniform, of few symbols,
palindromes or word-like: a model that is only ever shown uniform ones fails on `aaaa`, since repeats are rare there, and so it
never has to tell two equal letters apart by their place.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer_viz.errors import ConfigError, InputError, join_names, short_repr
from transformer_viz.language import later, say
from transformer_viz.schema import whole_number
from transformer_viz.tasks.task import UNKNOWN_CHARACTER, Example, Split, Task, check_length, check_share, check_symbols
from transformer_viz.vocabulary import Vocabulary

PRINTABLE_ASCII = "".join(chr(code) for code in range(32, 127))
LOWER_CASE = "abcdefghijklmnopqrstuvwxyz"
_ROUNDS = 50
# With `<start>` and `<end>` as long as what a model reads by default.
_LONGEST = 510
_ONSETS = "b c d f g h j k l m n p q r s t v w x y z br ch cl dr fl gr kn ph pl pr qu sh sk sl sn st th tr wh".split()
_VOWELS = "a e i o u y aa ai au ea ee ei ie io oa oo ou ue".split()
_CODAS = "b d ff g ght k ll m mm n nd ng nn nt p pp r rr rt s ss st t tt x y zz".split()
_WORDS = (
    "Mississippi Tennessee committee bookkeeper balloon coffee address success hello level noon racecar banana "
    "queue a I the and of to in is it you that he was for on are with as his they be at one have this from or had by "
    "word but not what all were we when your can said there use an each which she do how their if will up other about "
    "out many then them these so some her would make like him into time has look two more write go see number no way "
    "could people my than first water been call who oil its now find long down day did get come made may part over"
).split()
_PUNCTUATION = ", . ! ? ; : - ' \" ( ) / & % $ # @ + = * _".split()


def uniform(alphabet: str, length: int, count: int, rng: np.random.Generator) -> list[str]:
    """Each symbol independently and evenly from the alphabet."""
    return _spell(alphabet, rng.integers(len(alphabet), size=(count, length)))


def few(alphabet: str, length: int, count: int, rng: np.random.Generator) -> list[str]:
    """One to four different symbols each, as in `aaaa` or `abbaab`."""
    palette = rng.integers(len(alphabet), size=(count, 4))
    n_symbols = rng.integers(1, 5, size=(count, 1))
    which = (rng.random((count, length)) * n_symbols).astype(np.int64)
    return _spell(alphabet, np.take_along_axis(palette, which, axis=1))


def palindromes(alphabet: str, length: int, count: int, rng: np.random.Generator) -> list[str]:
    """The second half mirrors the first."""
    halves = uniform(alphabet, (length + 1) // 2, count, rng)
    return [half + half[::-1][length % 2 :] for half in halves]


def words(alphabet: str, length: int, count: int, rng: np.random.Generator) -> list[str]:
    """Word-like text: syllables and common words, capitals, numbers, punctuation, where the alphabet has them."""
    return [_sentence(frozenset(alphabet), length, rng) for _ in range(count)]


SAMPLERS = {"uniform": uniform, "few": few, "palindromes": palindromes, "words": words}


def _spell(alphabet: str, numbers: np.ndarray) -> list[str]:
    symbols = np.array(list(alphabet))
    return ["".join(row) for row in symbols[numbers]]


def _sentence(alphabet: frozenset[str], length: int, rng: np.random.Generator) -> str:
    """Exactly `length` symbols, cut out of running text that may begin in the middle of a word."""
    start = int(rng.integers(0, 4))
    text = ""
    while len(text) < start + length:
        piece = _word(rng)
        if rng.random() < 0.2:
            piece += str(rng.choice(_PUNCTUATION))
        text += "".join(symbol for symbol in piece + " " if symbol in alphabet)
    return text[start : start + length]


def _word(rng: np.random.Generator) -> str:
    kind = rng.random()
    if kind < 0.12:
        return str(rng.integers(0, 10 ** rng.integers(1, 6)))
    if kind < 0.4:
        word = str(rng.choice(_WORDS))
    else:
        word = "".join(_syllable(rng) for _ in range(rng.integers(1, 4)))
    style = rng.random()
    return word.upper() if style < 0.1 else word.capitalize() if style < 0.35 else word


def _syllable(rng: np.random.Generator) -> str:
    coda = _CODAS[rng.integers(len(_CODAS))] if rng.random() < 0.5 else ""
    return _ONSETS[rng.integers(len(_ONSETS))] + _VOWELS[rng.integers(len(_VOWELS))] + coda


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
            raise InputError(
                say("The text is empty. Type 1 to {most} characters: {possible}.", most=most, possible=self.possible())
            )
        possible = say("It knows {possible}. Take it out or choose another model.", possible=self.possible())
        check_symbols(text, self.source_vocabulary, UNKNOWN_CHARACTER, possible)
        check_length(len(text), most)
        return list(text)

    def symbols(self, text: str) -> list[str]:
        return list(text)

    def possible(self) -> str:
        """The alphabet in words."""
        if self.alphabet == PRINTABLE_ASCII:
            return say("the letters A-Z and a-z, digits, punctuation and the space (95 printable ASCII characters)")
        if self.alphabet == LOWER_CASE:
            return say("the letters a to z")
        return say("{n} symbols: {symbols}", n=len(self.alphabet), symbols=join_names(self.alphabet))

    def examples(self) -> list[Example]:
        known = [
            example
            for example in self.all_examples
            if len(example.text) <= self.max_length and set(example.text) <= set(self.alphabet)
        ]
        return known or [Example(self.alphabet[: min(8, self.max_length)], later("the first symbols of the alphabet"))]

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
