"""What an option may be, declared once beside its type: `beam_size: Annotated[int, Whole(1, 512)]`.

The command line reads an option by it from text, and a Python function checks a keyword by it.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from transformer_viz.errors import OptionError, listed, quoted


@dataclass(frozen=True)
class Whole:
    """A whole number within limits."""

    least: int
    most: int

    def __call__(self, text: str) -> int:
        """The number that a text says."""
        with suppress(ValueError, OptionError):
            return self.check("", int(text))
        raise OptionError(f"{text[:40]!r} is not possible; it is a whole number from {self.least} to {self.most}")

    def check(self, name: str, value: Any) -> int:
        """The value of a keyword, or an OptionError that names the keyword and the limits."""
        if isinstance(value, bool) or not isinstance(value, int) or not self.least <= value <= self.most:
            raise OptionError(f"{name}={quoted(value)} is not possible; it is a whole number from {self.least} to {self.most}")
        return value


@dataclass(frozen=True)
class Decimal:
    """A finite number of at least, or with `is_above` of more than, `least`."""

    least: float
    most: float = math.inf
    is_above: bool = False

    def __call__(self, text: str) -> float:
        """The number that a text says."""
        with suppress(ValueError, OptionError):
            return self.check("", float(text))
        raise OptionError(f"{text[:40]!r} is not possible; it is {self}")

    def __str__(self) -> str:
        if self.is_above:
            return f"a number above {self.least:g}" + ("" if math.isinf(self.most) else f", at most {self.most:g}")
        return f"a number from {self.least:g}" + ("" if math.isinf(self.most) else f" to {self.most:g}")

    def check(self, name: str, value: Any) -> float:
        """The value of a keyword, or an OptionError that names the keyword and the limits."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not is_number or not self.least <= value <= self.most or (self.is_above and value == self.least):
            raise OptionError(f"{name}={quoted(value)} is not possible; it is {self}")
        return float(value)


@dataclass(frozen=True)
class Choice:
    """One of several words."""

    values: tuple[str, ...]

    def check(self, name: str, value: Any) -> str:
        """The value of a keyword, or an OptionError that names the keyword and the words."""
        if value not in self.values:
            raise OptionError(f"{name}={quoted(value)} is not known; choose one of {listed(self.values)}")
        return value


def type_and_notes(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """`int` and its notes of `Annotated[int | None, …]`, the last note first; None as a value is left out."""
    if get_origin(hint) is Annotated:
        kind, notes = type_and_notes(hint.__origin__)
        return kind, (*reversed(hint.__metadata__), *notes)
    if get_origin(hint) in (Union, UnionType):
        return type_and_notes(next(member for member in get_args(hint) if member is not type(None)))
    return hint, ()


def check_keywords(keywords: type, given: Mapping[str, Any]) -> None:
    """Raises an OptionError for the first of some keywords that is not as a TypedDict declares it; None is as if not given."""
    for name, hint in get_type_hints(keywords, include_extras=True).items():
        if (value := given.get(name)) is None:
            continue
        kind, notes = type_and_notes(hint)
        for limits in (note for note in notes if isinstance(note, Whole | Decimal | Choice)):
            limits.check(name, value)
        if kind is bool and not isinstance(value, bool):
            raise OptionError(f"{name}={quoted(value)} is not possible; it is True or False")
