"""German number words to digits.

Worked example: `dreiundzwanzig` is read as the morphemes `drei und zwanzig` and framed `<start> drei und zwanzig <end>`. The
answer is `23`: step 0 must write `2` and look at `zwanzig`, key 3, step 1 must write `3` and look at `drei`, key 1. German
says the units before the tens, so the attention must cross. A zero that no word says has no true key.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from transformer_viz.errors import InputError, join_names
from transformer_viz.language import later, say
from transformer_viz.tasks.corpus import DrawnTask, Vocabularies
from transformer_viz.tasks.task import Example, check_length, check_symbols
from transformer_viz.text_display import quote_text
from transformer_viz.vocabulary import Vocabulary

_UNITS: list[str] = [*map(str, "null ein zwei drei vier fünf sechs sieben acht neun".split())]
_TEENS: list[str] = [*map(str, "zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn".split())]
_TENS: list[str] = [*map(str, "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split())]
_MORPHEMES = (*_UNITS, "eins", *_TEENS, *_TENS, "und", "hundert", "tausend")
_LONGEST_FIRST = re.compile("|".join(sorted(_MORPHEMES, key=len, reverse=True)))
_LARGEST = 999_999


class Numbers(DrawnTask):
    """Writes the digits of a German number word, from null to 999,999.

    Args:
        vocabularies: of a checkpoint that was trained before.
        held_out_share: share of all numbers that are kept out of training.
    """

    name = "numbers"
    about = later("writes German number words as digits")
    unknown = "This text is no number of the kind that it learned; it writes one all the same."
    sources = ("any", "short")
    max_length = 12
    max_target_length = 6
    evaluated_lengths = tuple(range(1, 12))

    all_examples = (
        Example("siebenhundertdreiundzwanzig", later("723: the attention crosses, since the units are said before the tens")),
        Example("einundzwanzigtausenddreihundertsechsundfünfzig", later("21356: it crosses twice")),
        Example("zweihundertacht", later("208: nobody says the zero")),
        Example("neunhundertneunundneunzigtausendneunhundertneunundneunzig", later("999999, the longest")),
        Example("zwölf", later("one word for two digits")),
    )

    def make_vocabularies(self) -> Vocabularies:
        return Vocabulary.of(_MORPHEMES), Vocabulary.of("0123456789")

    def read(self, text: str) -> list[str]:
        words = text.strip().lower()
        if not words:
            raise InputError(say("The text is empty. Type a German number word from null to 999999, such as dreiundzwanzig."))
        # A capital ẞ, and ss as Swiss people write it.
        words = words.replace("dreissig", "dreißig").replace(" ", "")
        parts = self.symbols(words)
        if "".join(parts) != words:
            raise InputError(
                say(
                    "{text} is not made of German number words. They are {words}, written together.",
                    text=quote_text(text, 60),
                    words=join_names(_MORPHEMES),
                )
            )
        check_length(len(parts), self.max_length, later("parts"))
        return parts

    def symbols(self, text: str) -> list[str]:
        return _LONGEST_FIRST.findall(text)

    def read_target(self, text: str) -> list[str]:
        sentence = later("Character {place} of the target is {symbol}; this model writes the digits 0 to 9.")
        check_symbols(text, self.target_vocabulary, sentence)
        return list(text)

    def answer(self, symbols: Sequence[str]) -> list[str] | None:
        places = digits_of(symbols)
        return None if places is None else [digit for digit, _ in places]

    def alignment(self, symbols: Sequence[str], n_steps: int) -> list[int | None]:
        places = digits_of(symbols) or []
        keys = [None if place is None else place + 1 for _, place in places]
        return [keys[t] if t < len(keys) else None for t in range(n_steps)]

    def split_key(self, text: str) -> str:
        """Two spellings of one number are on the same side."""
        return "".join(self.answer(self.symbols(text)) or text)

    def draw(self, source: str, length: int | None, count: int, missing: int, rng: np.random.Generator) -> Iterator[str]:
        """`any`: all numbers alike; `short`: all numbers of digits alike, so that small numbers come often."""
        size = 2 * count + 20 if length is None else 20 * count
        if source == "any":
            numbers = rng.integers(0, _LARGEST + 1, size=size)
        else:
            sizes = rng.integers(1, 7, size=size)
            numbers = (10**sizes * rng.random(size)).astype(int)
        return map(_word, numbers.tolist())


Digit = tuple[str, int | None]
"""A digit, and the index of the morpheme that says it."""


def digits_of(morphemes: Sequence[str]) -> list[Digit] | None:
    """The digits of a number word and which morpheme says each; None where the word is no number."""
    if list(morphemes) == ["null"]:
        return [("0", 0)]
    if morphemes.count("tausend") > 1:
        return None
    cut = morphemes.index("tausend") if "tausend" in morphemes else -1
    high = _below_thousand(morphemes[:cut], 0, bare=cut) if cut >= 0 else [("0", None)] * 3
    rest = morphemes[cut + 1 :]
    low = _below_thousand(rest, cut + 1) if rest else [("0", None)] * 3
    if high is None or low is None or (cut < 0 and not rest):
        return None
    digits = high + low
    first = next((i for i, (digit, _) in enumerate(digits) if digit != "0"), None)
    return None if first is None else digits[first:]


def _below_thousand(morphemes: Sequence[str], start: int, bare: int | None = None) -> list[Digit] | None:
    """Three digits of what stands before or after `tausend`; `tausend` alone, at `bare`, says one thousand."""
    if not morphemes:
        return [("0", None), ("0", None), ("1", bare)] if bare is not None else None
    hundreds: Digit = ("0", None)
    rest = list(morphemes)
    if "hundert" in rest:
        cut = rest.index("hundert")
        if cut > 1 or (cut == 1 and rest[0] not in _UNITS[1:]):
            return None
        hundreds = (str(_UNITS.index(rest[0])), start) if cut else ("1", start)
        start, rest = start + cut + 1, rest[cut + 1 :]
    if not rest:
        return [hundreds, ("0", None), ("0", None)]
    two = _below_hundred(rest, start, is_last=bare is None)
    return None if two is None else [hundreds, *two]


def _below_hundred(rest: list[str], start: int, *, is_last: bool) -> list[Digit] | None:
    # `ein` before `tausend` only; of `achthunderteinstausend` `eins` may stand there too.
    ones = ("eins",) if is_last else ("ein", "eins")
    match rest:
        case [word] if word in _TEENS:
            return [("1", start), (str(_TEENS.index(word)), start)]
        case [word] if word in _TENS:
            return [(str(_TENS.index(word) + 2), start), ("0", None)]
        case [word] if word in ones or word in _UNITS[2:]:
            return [("0", None), ("1" if word in ones else str(_UNITS.index(word)), start)]
        case [unit, "und", tens] if unit in _UNITS[1:] and tens in _TENS:
            return [(str(_TENS.index(tens) + 2), start + 2), (str(_UNITS.index(unit)), start)]
    return None


def _word(number: int) -> str:
    """A number from 0 to 999,999 as a word, as Germans write it."""
    thousands, rest = divmod(number, 1000)
    if not thousands:
        return _word_below_thousand(rest) or _UNITS[0]
    # One thousand is `eintausend`; after hundreds, as in 801000, `eins` stands before `tausend`.
    before = _UNITS[1] if thousands == 1 else _word_below_thousand(thousands)
    return f"{before}tausend{_word_below_thousand(rest)}"


def _word_below_thousand(number: int) -> str:
    """The word for a number below 1000; empty for 0."""
    hundreds, rest = divmod(number, 100)
    tens, units = divmod(rest, 10)
    first = f"{_UNITS[hundreds]}hundert" if hundreds else ""
    if rest == 1:
        return f"{first}eins"
    if tens == 0:
        return first + (_UNITS[units] if units else "")
    if tens == 1:
        return first + _TEENS[units]
    return f"{first}{f'{_UNITS[units]}und' if units else ''}{_TENS[tens - 2]}"


TASK = Numbers
