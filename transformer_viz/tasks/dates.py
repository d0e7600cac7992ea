"""Dates as people write them in several languages to ISO 8601; names and patterns come from the package Babel (CLDR).

Worked example: `5. März 1986` is framed as `<start> 5 . ␣ M ä r z ␣ 1 9 8 6 <end>`; the answer is `1986-03-05`. Step 0 must
write `1` and look at key 9, where the year begins; step 9 must write `5` and look at key 1. The month is a word here and
the zeros stand nowhere, so those steps have no true key.

A text such as `03/04/2024` is read in two ways: it is never drawn, and has no true answer.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, lru_cache
from typing import Any

import numpy as np

from transformer_viz.errors import ConfigError, InputError, join_names
from transformer_viz.language import later, say
from transformer_viz.tasks.corpus import DrawnTask, Vocabularies, need
from transformer_viz.tasks.task import UNKNOWN_CHARACTER, Example, check_length, check_symbols
from transformer_viz.vocabulary import Vocabulary

LANGUAGES = {
    "English (US)": "en_US",
    "English (UK)": "en_GB",
    "German": "de_DE",
    "French": "fr_FR",
    "Spanish": "es_ES",
    "Italian": "it_IT",
    "Dutch": "nl_NL",
    "Swedish": "sv_SE",
    "Japanese": "ja_JP",
}
_FIRST, _LAST = date(1900, 1, 1), date(2099, 12, 31)
_WIDTHS = ("short", "medium", "long", "full")
_LOWER_CASE = 0.15
"""Share of the texts in lower case, as people type."""
# A field of a CLDR pattern, or text in quotes, or any other character.
_PIECE = re.compile(r"'([^']*)'|([dMLyE])\2*|.", re.DOTALL)


@dataclass(frozen=True)
class PossibleDate:
    """A text read as a date, and where its year, month and day stand; the month's place is None where it is a word."""

    day: date
    spans: dict[str, tuple[int, int]]


class Dates(DrawnTask):
    """Writes a date as YYYY-MM-DD.

    Args:
        vocabularies: of a checkpoint that was trained before.
        held_out_share: share of all days that training never sees, in no language.
    """

    name = "dates"
    about = later("writes dates of several languages as year, month and day")
    unknown = "This text is no date of the kinds that it learned; it writes one all the same."
    sources = tuple(LANGUAGES)
    max_length = 44
    max_target_length = 10
    evaluated_lengths = tuple(range(8, 37))
    rounds = 200
    all_examples = (
        Example("5. März 1986", later("German: the day first, the month a word")),
        Example("March 5, 1986", later("American English")),
        Example("mercredi 5 mars 1986", later("French, with a weekday that nobody needs")),
        Example("1986年3月5日", later("Japanese: the year first")),
        Example("25/12/2031", later("figures only: no month has 25 days before it")),
        Example("3/4/2024", later("two readings: April 3 or March 4; there is no right answer")),
    )

    def make_vocabularies(self) -> Vocabularies:
        """Every character that a date of these languages can hold."""
        symbols = set("0123456789")
        for locale in LANGUAGES.values():
            for pattern in _forms(locale):
                pieces = [piece for piece in _PIECE.finditer(pattern) if piece.group(2) is None]
                symbols |= {c for piece in pieces for c in (piece.group(1) or piece.group(0))}
            names = _locale(locale)
            for kind in (names.months, names.days):
                symbols |= {c for width in ("wide", "abbreviated") for name in kind["format"][width].values() for c in name}
        texts = [case for text in symbols for case in (_plain(text), *text.upper(), *text.lower())]
        source = sorted({c for c in texts if c.isprintable() and len(c) == 1} - {"'"})
        return Vocabulary.of(source), Vocabulary.of("-0123456789")

    def read(self, text: str) -> list[str]:
        if not text.strip():
            raise InputError(say("The text is empty. Type a date in words or figures, such as 5. März 1986."))
        possible = say("It knows the letters, figures and marks of dates in {languages}.", languages=join_names(LANGUAGES))
        check_symbols(text, self.source_vocabulary, UNKNOWN_CHARACTER, possible)
        check_length(len(text), self.max_length)
        return list(text)

    def symbols(self, text: str) -> list[str]:
        return list(text)

    def read_target(self, text: str) -> list[str]:
        sentence = later("Character {place} of the target is {symbol}; this model writes figures and -, as in 1986-03-05.")
        check_symbols(text, self.target_vocabulary, sentence)
        return list(text)

    def answer(self, symbols: Sequence[str]) -> list[str] | None:
        reading = _known("".join(symbols))
        return None if reading is None else list(reading.day.isoformat())

    def alignment(self, symbols: Sequence[str], n_steps: int) -> list[int | None]:
        reading = _known("".join(symbols))
        keys: list[int | None] = [None] * n_steps
        if reading is None:
            return keys
        # Steps 0-3, 5-6 and 8-9 write year, month and day; a number's last figure is the last one written.
        for name, end in (("y", 4), ("M", 7), ("d", 10)):
            first, last = reading.spans.get(name, (0, 0))
            for back in range(min(last - first, 4 if name == "y" else 2)):
                if end - 1 - back < n_steps:
                    keys[end - 1 - back] = last - back
        return keys

    def split_key(self, text: str) -> str:
        """The day itself: one that is held out is held out in every language."""
        reading = _only_date(text)
        return text if reading is None else reading.day.isoformat()

    def is_clear(self, text: str) -> bool:
        """The same text must not mean another day in another language."""
        return _only_date(text) is not None

    def draw(self, source: str, length: int | None, count: int, missing: int, rng: np.random.Generator) -> Iterator[str]:
        dates = need("babel.dates", "babel", "dates")
        forms = _forms(LANGUAGES[source])
        for days in rng.integers((_LAST - _FIRST).days + 1, size=missing + 5):
            form = forms[rng.integers(len(forms))]
            text = _plain(dates.format_date(_FIRST + timedelta(days=int(days)), form, locale=LANGUAGES[source]))
            yield text.lower() if rng.random() < _LOWER_CASE else text


def possible_dates(text: str) -> list[PossibleDate]:
    """Every date that the text can mean in one of the languages, each once."""
    readings_of: dict[date, PossibleDate] = {}
    for pattern, months, weekdays in _patterns():
        match = pattern.fullmatch(text)
        if match is None:
            continue
        parts = match.groupdict()
        month = months.get(parts["month"].casefold(), 0) if "month" in parts else int(parts["M"])
        try:
            day = date(int(parts["y"]), month, int(parts["d"]))
        except ValueError:
            continue
        if "weekday" not in parts or weekdays.get(parts["weekday"].casefold()) == day.weekday():
            spans = {name: match.span(name) for name in ("y", "M", "d") if name in parts}
            readings_of.setdefault(day, PossibleDate(day, spans))
    return list(readings_of.values())


def _known(text: str) -> PossibleDate | None:
    """The one reading; None also where Babel is not installed, since then nobody knows."""
    try:
        return _only_date(text)
    except ConfigError:
        return None


@lru_cache(maxsize=4096)
def _only_date(text: str) -> PossibleDate | None:
    dates = possible_dates(text)
    return dates[0] if len(dates) == 1 else None


Pattern = tuple[re.Pattern[str], dict[str, int], dict[str, int]]


@cache
def _patterns() -> tuple[Pattern, ...]:
    """Every pattern of every language as an expression, with the names of its months and weekdays; alike ones once."""
    patterns: dict[str, Pattern] = {}
    for locale in LANGUAGES.values():
        for pattern in _forms(locale):
            months: dict[str, int] = {}
            weekdays: dict[str, int] = {}
            parts = []
            for piece in _PIECE.finditer(pattern):
                field = piece.group(0)
                if piece.group(2) is None:
                    parts.append(re.escape(piece.group(1) if piece.group(1) is not None else field))
                elif field[0] == "y":
                    parts.append(r"(?P<y>\d{4})")
                elif field[0] == "E" or (field[0] in "ML" and len(field) > 2):
                    kind, group = ("days", "weekday") if field[0] == "E" else ("months", "month")
                    width = "wide" if len(field) == 4 else "abbreviated"
                    formats = getattr(_locale(locale), kind)["format"][width]
                    names = {name.casefold(): number for number, name in formats.items()}
                    months, weekdays = (months, names) if kind == "days" else (names, weekdays)
                    parts.append(f"(?P<{group}>{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})")
                else:
                    figures = "{1,2}" if len(field) == 1 else "{2}"
                    parts.append(rf"(?P<{'d' if field[0] == 'd' else 'M'}>\d{figures})")
            expression = "".join(parts)
            patterns.setdefault(expression, (re.compile(expression, re.IGNORECASE), months, weekdays))
    return tuple(patterns.values())


@cache
def _forms(locale: str) -> tuple[str, ...]:
    """CLDR patterns of a language; a year of two figures could be of any century, so it gets four."""
    formats = _locale(locale).date_formats
    forms = [re.sub(r"y+", "y", formats[width].pattern) for width in _WIDTHS]
    bare = [
        re.sub(r"\bdd\b", "d", re.sub(r"\bMM\b", "M", forms[0])),
        re.sub(r"\bEEEE?[,、.]? ?(?:'den' )?", "", forms[3]).strip(),
    ]
    return tuple(dict.fromkeys([*forms, *bare]))


def _plain(text: str) -> str:
    """With ordinary spaces: nobody types the narrow ones of CLDR."""
    return text.replace("\u202f", " ").replace("\u00a0", " ")


def _locale(name: str) -> Any:
    return need("babel", "babel", "dates").Locale.parse(name)


TASK = Dates
