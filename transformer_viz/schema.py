"""Reads dataclasses from JSON, which anybody may have written, and checks each value by the type and range of its field.

Fields are text, whole or finite numbers, booleans, None, tuples, mappings, `Literal`, unions and dataclasses of these; `Any` is
taken as it is. A field of another class, such as an array, takes an object of this class, which JSON cannot make.
`Annotated[int, Range(1, 128)]` limits a number, the characters of a text, or the entries of a tuple or mapping; other
annotations are ignored. A dataclass checks in `__post_init__` whether its fields fit together.
"""

import json
import math
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, partial, reduce
from itertools import repeat
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from transformer_viz.errors import FileError, OptionError, TransformerVizError, join_names, short_repr
from transformer_viz.text_display import shorten

LARGEST = 2**53
"""Whole numbers up to here are the same in every program that reads JSON."""
_ENDLESS = 1e300


@dataclass(frozen=True)
class Range:
    """The limits of a number, of the characters of a text, or of the entries of a tuple or a mapping.

    Attributes:
        least: the smallest.
        most: the largest.
        above: whether `least` itself is too small.
        below: whether `most` itself is too large.
        has_nan: whether null stands for NaN, which JSON does not have.
    """

    least: float = -_ENDLESS
    most: float = _ENDLESS
    above: bool = False
    below: bool = False
    has_nan: bool = False

    def __contains__(self, number: float) -> bool:
        is_enough = self.least < number if self.above else self.least <= number
        return is_enough and (number < self.most if self.below else number <= self.most)

    def __str__(self) -> str:
        """`from 1 to 128`, or `at least 0`; nothing of a range without ends."""
        least, most = (f"{end:.6g}" if isinstance(end, float) else str(end) for end in (self.least, self.most))
        has_least, has_most = (abs(end) not in (LARGEST, _ENDLESS) for end in (self.least, self.most))
        if has_least and has_most and not self.above and not self.below:
            return f"from {least} to {most}"
        ends = [f"{'above' if self.above else 'at least'} {least}"] * has_least
        return " and ".join(ends + [f"{'below' if self.below else 'at most'} {most}"] * has_most)


@dataclass(frozen=True)
class Choice:
    """One of several words that are computed, so that no `Literal` can list them."""

    values: tuple[str, ...]


Count = Annotated[int, Range(0, LARGEST)]
Share = Annotated[float, Range(0, 1 + 1e-6)]
"""A share or a probability, as sums of rounded numbers have it."""


class _Impossible(Exception):
    """An impossible value: a sentence about it, the path to it, and what is possible there."""

    def __init__(self, sentence: str, where: str | None = None, possible: str = "") -> None:
        super().__init__(sentence)
        self.where, self.possible = where, possible


@contextmanager
def _raising(error: type[TransformerVizError]) -> Generator[None]:
    try:
        yield
    except _Impossible as impossible:
        raise error(str(impossible)) from impossible.__cause__


def to_plain(value: Any) -> Any:
    """A dataclass as JSON has it; NaN and infinity are null."""
    return json.loads(json.dumps(value, default=init_fields), parse_constant=lambda name: None)


def init_fields(value: Any) -> dict[str, Any]:
    """The parts of a dataclass, or of a mapping, by name.

    Raises:
        TypeError: it is neither, so JSON cannot hold it.
    """
    if isinstance(value, Mapping):
        return dict(value)
    return {field.name: getattr(value, field.name) for field in fields(value) if field.init}


def read_value(kind: Any, value: Any, where: str = "", error: type[TransformerVizError] = FileError) -> Any:
    """The inverse of `to_plain`.

    Args:
        kind: a dataclass, or the type of a field.
        value: what JSON gave.
        where: what `value` is called in messages, before the names of its fields.
        error: which error to raise.

    Raises:
        TransformerVizError: a value of another type or out of its range, a field that is missing or unknown, or parts that do
            not fit together.
    """
    with _raising(error):
        return _reader(kind)(value, where)


def check_fields(value: Any, error: type[TransformerVizError]) -> None:
    """Checks each field of a dataclass that was made in Python, as `read_value` checks what is read."""
    with _raising(error):
        for name, (read, _) in _fields(type(value)).items():
            read(getattr(value, name), name)


def check_keywords(keywords: type, given: Mapping[str, Any]) -> None:
    """Raises an OptionError for the first keyword that is not as a TypedDict declares it; None counts as not given."""
    with _raising(OptionError):
        for name, hint in get_type_hints(keywords, include_extras=True).items():
            if given.get(name) is not None:
                _reader(_without_none(hint))(given[name], name)


def _without_none(kind: Any) -> Any:
    """`int` of `int | None`, so that a message does not name null as one more possible value."""
    if get_origin(kind) is Annotated:
        inner, *notes = get_args(kind)
        return Annotated[(_without_none(inner), *notes)]
    if get_origin(kind) in (UnionType, Union):
        return reduce(or_, (part for part in get_args(kind) if part is not NoneType))
    return kind


def read_number(kind: type, limits: Range, text: str) -> Any:
    """The number, an int or a float, that somebody typed, or an OptionError that says what is possible."""
    try:
        value = kind(text)
    except ValueError:
        value = None
    try:
        return (_whole if kind is int else _number)(limits, value, "")
    except _Impossible as impossible:
        raise OptionError(f"{text[:40]!r} is not possible; it is {impossible.possible}") from None


def whole_number(name: str, value: Any, least: int, most: int, error: type[TransformerVizError] = OptionError) -> int:
    """A whole number from `least` to `most`, or the error that names both."""
    with _raising(error):
        return _whole(Range(least, most), value, name)


def finite_number(name: str, value: Any, least: float, most: float, error: type[TransformerVizError] = OptionError) -> float:
    """A number from `least` to `most`, or the error that names both."""
    with _raising(error):
        return _number(Range(least, most), value, name)


@cache
def _reader(kind: Any) -> Callable[[Any, str], Any]:
    """The function that reads a value of a type. A survey has thousands of values of the same few types."""
    limits: Range | Choice | None = None
    if get_origin(kind) is Annotated:
        kind, *notes = get_args(kind)
        limits = next((note for note in notes if isinstance(note, Range | Choice)), None)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union):
        others = [Annotated[part, limits] if limits else part for part in parts if part is not NoneType]
        return partial(_any_of, tuple(map(_reader, others)), NoneType in parts)
    if isinstance(limits, Choice):
        return partial(_one_of, limits.values)
    if is_dataclass(kind):
        return partial(_dataclass, kind)
    if kind is int:
        return partial(_whole, limits or Range(-LARGEST, LARGEST))
    if kind is float:
        return partial(_number, limits or Range())
    if kind is str:
        return partial(_text, limits or Range(0, 2000))
    if origin is tuple:
        is_long = parts[-1] is Ellipsis
        return partial(_tuple, tuple(map(_reader, parts[:1] if is_long else parts)), is_long, limits or Range())
    if origin in (Mapping, dict):
        return partial(_mapping, *map(_reader, parts), limits or Range())
    if origin is Literal:
        return partial(_one_of, parts)
    return {bool: _truth, Any: lambda value, where: value}.get(kind) or partial(_instance, kind)


@cache
def _fields(kind: Any) -> dict[str, tuple[Callable[[Any, str], Any], bool]]:
    """What reads each field, and whether it must be given."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        field.name: (_reader(hints[field.name]), field.default is MISSING and field.default_factory is MISSING)
        for field in fields(kind)
        if field.init
    }


def _refusal(value: Any, where: str, possible: str) -> _Impossible:
    return _Impossible(f"{where or 'it'}={short_repr(value)} is not possible; it is {possible}", where, possible)


def _dataclass(kind: type, value: Any, where: str) -> Any:
    if not isinstance(value, Mapping):
        raise _refusal(value, where, "an object")
    known = _fields(kind)
    if missing := [name for name, (_, is_needed) in known.items() if is_needed and name not in value]:
        raise _Impossible(f"{where or 'it'} lacks {missing[0]!r}")
    if unknown := [name for name in value if name not in known]:
        raise _Impossible(
            f"{where or 'it'} has {short_repr(unknown[0])}, which does not belong there; it has {join_names(known)}"
        )
    path = f"{where}." if where else ""
    values = {name: read(value[name], f"{path}{name}") for name, (read, _) in known.items() if name in value}
    try:
        return kind(**values)
    except TransformerVizError as error:
        raise _Impossible(f"{where}: {error}" if where else str(error)) from error


def _text(limits: Range, value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value) not in limits:
        raise _refusal(value, where, f"text of {limits.least} to {limits.most:,} characters")
    return value


def _truth(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise _refusal(value, where, "true or false")
    return value


def _instance(kind: type, value: Any, where: str) -> Any:
    if not isinstance(value, kind):
        raise _refusal(value, where, f"an {kind.__name__}")
    return value


def _whole(limits: Range, value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in limits:
        raise _refusal(value, where, f"a whole number {limits}".rstrip())
    return value


def _number(limits: Range, value: Any, where: str) -> float:
    if value is None and limits.has_nan:
        return math.nan
    # Compared before it is converted: a whole number may be too large to be a float.
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in limits:
        possible = f"a number {limits}" if str(limits) else "a finite number"
        raise _refusal(value, where, possible + (", or null" if limits.has_nan else ""))
    return float(value)


def _entries(limits: Range) -> str:
    return "" if limits == Range() else f" of {limits.least} to {limits.most:,} entries"


def _tuple(readers: tuple[Any, ...], is_long: bool, limits: Range, value: Any, where: str) -> tuple[Any, ...]:
    """Of entries of one type each, or of any number of one type."""
    n = len(readers)
    if not isinstance(value, list | tuple) or not (is_long or len(value) == n) or len(value) not in limits:
        raise _refusal(value, where, f"a list{_entries(limits) if is_long else f' of {n}'}")
    each = repeat(readers[0], len(value)) if is_long else readers
    return tuple([read(entry, f"{where}[{i}]") for i, (read, entry) in enumerate(zip(each, value, strict=True))])


def _mapping(read_name: Any, read_entry: Any, limits: Range, value: Any, where: str) -> dict[Any, Any]:
    if not isinstance(value, Mapping) or len(value) not in limits:
        raise _refusal(value, where, f"an object{_entries(limits)}")
    return {
        read_name(name, f"a name in {where}"): read_entry(entry, f"{where}.{shorten(str(name))}")
        for name, entry in value.items()
    }


def _one_of(allowed: tuple[Any, ...], value: Any, where: str) -> Any:
    if not isinstance(value, str) or value not in allowed:
        raise _refusal(value, where, f"one of {join_names(allowed)}")
    return value


def _any_of(readers: tuple[Any, ...], has_none: bool, value: Any, where: str) -> Any:
    """The first type that it is of."""
    if has_none and value is None:
        return None
    possible = []
    for read in readers:
        try:
            return read(value, where)
        except _Impossible as impossible:
            if impossible.where != where:  # of this type, and wrong inside
                raise
            possible.append(impossible.possible)
    raise _refusal(value, where, ", or ".join(possible + ["null"] * has_none))
