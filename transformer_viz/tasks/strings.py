"""Random strings to train and to judge on: uniform, few symbols, palindromes, word-like text.

A model that is only ever shown uniform strings fails on `aaaa`: repeats are rare there,
and so it never has to tell two equal letters apart by their place.
"""

import numpy as np

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
