"""How a link says a control's value: each kind reads it, checks it and writes it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from transformer_viz.errors import listed

LONGEST_TEXT = 1500
"""Characters of a text that a link holds."""
_CELL = re.compile(r"(\d{0,9})(?:,(\d{1,9}))?", re.ASCII)
_ADDRESS = re.compile(r"[a-z_]{1,20}(\.[1-9]\d{0,4}){0,2}", re.ASCII)
_ID = re.compile(r"\d{1,9}", re.ASCII)
Options = Mapping[str, Any] | Sequence[Any] | None
"""What is possible: values, or the word of a link that stands for each."""
Complain = Callable[[str], None]
"""Told what would be possible."""


class Value(Protocol):
    """One kind of value. None is no value: of `read`, what was given is not possible; of `written`, a link cannot hold it."""

    def read(self, given: str, options: Options, complain: Complain) -> Any:
        """What a link's word means."""

    def holds(self, value: Any, options: Options) -> bool:
        """Whether a value of the session is possible."""

    def written(self, value: Any, options: Options) -> str | None:
        """The link's word for it."""


@dataclass(frozen=True)
class Words:
    """One of the options, by its word or as it is."""

    possible: str = ""
    """What is said to be possible, where the options' own words would not tell."""
    formerly: Mapping[str, str] = field(default_factory=dict)
    """Words of older links, and what each is called now."""

    def read(self, given: str, options: Options, complain: Complain) -> Any:
        """The option whose word it is."""
        words = _words(options)
        given = self.formerly.get(given, given)
        if given not in words:
            complain(self.possible or listed(words))
        return words.get(given)

    def holds(self, value: Any, options: Options) -> bool:
        """Whether it is one of the options."""
        return value in _words(options).values()

    def written(self, value: Any, options: Options) -> str | None:
        """The option's word."""
        if not isinstance(options, Mapping):
            return str(value)
        return next((word for word, named in options.items() if named == value), None)


@dataclass(frozen=True)
class Number:
    """One of the options, which are whole numbers; there may be words among them, as `mean` among heads."""

    first: int = 1
    """What a link calls 0: a person counts from 1."""

    def read(self, given: str, options: Options, complain: Complain) -> Any:
        """The number, or the word."""
        assert options is not None
        if not isinstance(options, range) and given in options:
            return given
        # str.isdigit is true of superscripts and other digits that int() cannot read.
        if given.isascii() and given.isdigit() and int(given[:18]) - self.first in options:
            return int(given[:18]) - self.first
        complain(self._possible(options))
        return None

    def holds(self, value: Any, options: Options) -> bool:
        """Whether it is one of the options."""
        return options is not None and value in options

    def written(self, value: Any, options: Options) -> str | None:
        """As a person counts."""
        return str(value + self.first) if isinstance(value, int) else value

    def _possible(self, options: Mapping[str, Any] | Sequence[Any]) -> str:
        if isinstance(options, range):
            return f"{options[0] + self.first} to {options[-1] + self.first}"
        numbers = [option + self.first for option in options if isinstance(option, int)]
        is_whole = numbers == list(range(numbers[0], numbers[-1] + 1))
        words = f"{numbers[0]} to {numbers[-1]}" if is_whole else listed(numbers)
        return ", ".join([words, *(option for option in options if isinstance(option, str))])


@dataclass(frozen=True)
class Cell:
    """A row and a column of a map, `3,5`, or one of them, `3` or `,5`; () is neither. The options are how many there are."""

    def read(self, given: str, options: Options, complain: Complain) -> Any:
        """Two numbers from 0, None for the one that is not said."""
        words = _CELL.fullmatch(given)
        place = tuple(int(word) - 1 if word else None for word in words.groups()) if words else ()
        if place and self.holds(place, options):
            return place
        rows, columns = _two(options)
        complain(f"row,column up to {rows},{columns}")
        return None

    def holds(self, value: Any, options: Options) -> bool:
        """Whether there are such a row and column."""
        if value == ():
            return True
        is_pair = isinstance(value, tuple) and len(value) == 2 and value != (None, None)
        return is_pair and all(
            place is None or (isinstance(place, int) and 0 <= place < n) for place, n in zip(value, _two(options), strict=True)
        )

    def written(self, value: Any, options: Options) -> str | None:
        """As a person counts."""
        words = ",".join("" if place is None else str(place + 1) for place in value)
        return words.removesuffix(",") or None


@dataclass(frozen=True)
class Address:
    """A number inside a head, `weight.5`, or another thing with a place; nothing is none. Whether it is there is seen where it
    is shown."""

    pattern: re.Pattern[str] = _ADDRESS
    possible: str = "the name of a number and its place, as weight.5 or key.5.1"

    def read(self, given: str, options: Options, complain: Complain) -> Any:
        """As it is, where it is one."""
        if self.holds(given, options):
            return given
        complain(self.possible)
        return None

    def holds(self, value: Any, options: Options) -> bool:
        """Whether it looks like one."""
        return isinstance(value, str) and (not value or self.pattern.fullmatch(value) is not None)

    def written(self, value: Any, options: Options) -> str | None:
        """As it is."""
        return value or None


@dataclass(frozen=True)
class Decimal:
    """A number within limits."""

    least: float
    most: float

    def read(self, given: str, options: Options, complain: Complain) -> Any:
        """The number."""
        try:
            value = float(given)
        except ValueError:
            value = None
        if not self.holds(value, options):
            complain(f"{self.least:g} to {self.most:g}")
            return None
        return value

    def holds(self, value: Any, options: Options) -> bool:
        """Whether it is within the limits; what is not a number is not."""
        return isinstance(value, int | float) and self.least <= value <= self.most

    def written(self, value: Any, options: Options) -> str | None:
        """Every digit of it, and no decimal point that means nothing."""
        return str(value).removesuffix(".0")


@dataclass(frozen=True)
class Text:
    """What somebody typed, up to a number of characters; what is longer is cut, and that is said."""

    most: int

    def read(self, given: str, options: Options, complain: Complain) -> Any:
        """The text."""
        if len(given) > self.most:
            complain(f"a text of at most {self.most:,} characters; it is cut there")
        return given[: self.most]

    def holds(self, value: Any, options: Options) -> bool:
        """Any text."""
        return isinstance(value, str)

    def written(self, value: Any, options: Options) -> str | None:
        """The text, where a link holds it; `link.too_long` says where not."""
        return value if len(value) <= LONGEST_TEXT else None


@dataclass(frozen=True)
class Tokens:
    """Tokens of the vocabulary that the options are, between tabs: a comma may be a token. Of a model whose labels do not tell
    tokens apart the options are its ids, a range."""

    def read(self, given: str, options: Options, complain: Complain) -> Any:
        """A list of them."""
        tokens: list[Any] = given.split("\t") if given else []
        if isinstance(options, range):
            tokens = [int(token) if _ID.fullmatch(token) else token for token in tokens]
        if options is None or any(token not in options for token in tokens):
            complain("tokens of this model")
            return None
        return tokens

    def holds(self, value: Any, options: Options) -> bool:
        """Whether all of them are in this vocabulary."""
        return options is not None and all(token in options for token in value)

    def written(self, value: Any, options: Options) -> str | None:
        """Nothing where there are none."""
        return "\t".join(map(str, value)) or None


@dataclass(frozen=True)
class Elsewhere:
    """Read and written by the part that draws the control."""

    why: str

    def read(self, given: str, options: Options, complain: Complain) -> Any:
        """Never asked."""
        raise NotImplementedError(self.why)

    def holds(self, value: Any, options: Options) -> bool:
        """Never asked."""
        raise NotImplementedError(self.why)

    def written(self, value: Any, options: Options) -> str | None:
        """Never asked."""
        raise NotImplementedError(self.why)


def _two(options: Options) -> tuple[int, int]:
    assert options is not None and not isinstance(options, Mapping)
    rows, columns = options
    return rows, columns


def _words(options: Options) -> Mapping[str, Any]:
    assert options is not None
    return options if isinstance(options, Mapping) else {str(option): option for option in options}
