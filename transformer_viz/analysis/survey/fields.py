"""Dataclasses as JSON and back, by the types of their fields. What is read may be anybody's: each value is checked.

Known are text, whole and finite numbers, truth values, None, tuples, mappings, `Literal`, `Any` (plain values, or lists of
them) and dataclasses of these. How the parts of a dataclass fit together is said by its own `__post_init__`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from transformer_viz.analysis.verdict import Mean
from transformer_viz.errors import SurveyError, listed, quoted, shortened

LONGEST_TEXT = 2000
"""Characters."""
LARGEST = 2**53
"""Whole numbers up to here are the same in every program that reads JSON."""


def plain(value: Any) -> Any:
    """A dataclass as JSON has it; a number that is none is null."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def built(kind: Any, value: Any, where: str) -> Any:
    """The inverse of `plain`: what `kind`, a dataclass or the type of a field, is made of.

    Raises:
        SurveyError: a value of another type, a field that is missing or unknown; `where` it is stands before it.
    """
    return _reader(kind)(value, where)


@cache
def _reader(kind: Any) -> Callable[[Any, str], Any]:
    """What reads a value of a type. A file of a block has three hundred values, and there are thousands of files."""
    if isinstance(kind, type) and is_dataclass(kind):
        return partial(_dataclass, kind)
    return _SIMPLE.get(kind) or partial(_ORIGINS[get_origin(kind)], get_args(kind))


def _dataclass(kind: type, value: Any, where: str) -> Any:
    hints, given = _types(kind), _object(value, where)
    if missing := [name for name in hints if name not in given]:
        raise SurveyError(f"{where} lacks {missing[0]!r}")
    if unknown := [name for name in given if name not in hints]:
        raise SurveyError(f"{where} has {shortened(unknown[0])!r}, which does not belong there; it has {listed(hints)}")
    if kind is Mean and given["value"] is None:
        # Of no step there is no mean.
        return kind(value=math.nan, interval=None)
    return kind(**{name: built(hint, given[name], f"{where}.{name}") for name, hint in hints.items()})


@cache
def _types(kind: type) -> dict[str, Any]:
    """In the order of the fields."""
    return get_type_hints(kind)


def _wrong(value: Any, where: str, wanted: str) -> SurveyError:
    return SurveyError(f"{where} is {quoted(value)}; {wanted} is needed")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise _wrong(value, where, f"text of at most {LONGEST_TEXT:,} characters")
    return value


def _truth(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(value, where, "true or false")
    return value


def _whole(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > LARGEST:
        raise _wrong(value, where, "a whole number")
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300 or math.isnan(value):
        raise _wrong(value, where, "a finite number")
    return float(value)


def _nothing(value: Any, where: str) -> None:
    if value is not None:
        raise _wrong(value, where, "null")


def _anything(value: Any, where: str) -> Any:
    """A plain value, or a list of them."""
    if isinstance(value, list):
        return tuple(_anything(each, where) for each in value)
    readers = {str: _text, bool: _truth, int: _whole, float: _number, NoneType: _nothing}
    if type(value) not in readers:
        raise _wrong(value, where, "text, a number, true, false, null or a list of these")
    return readers[type(value)](value, where)


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(value, where, "an object")
    return value


def _tuple(types: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _wrong(value, where, "a list")
    if types[-1] is Ellipsis:
        read = _reader(types[0])
        return tuple([read(each, f"{where}[{i}]") for i, each in enumerate(value)])
    if len(value) != len(types):
        raise _wrong(value, where, f"a list of {len(types)}")
    return tuple(built(kind, each, f"{where}[{i}]") for i, (kind, each) in enumerate(zip(types, value, strict=True)))


def _mapping(types: tuple[Any, ...], value: Any, where: str) -> dict[Any, Any]:
    name, of = types
    return {
        built(name, key, where): built(of, each, f"{where}.{shortened(key)}") for key, each in _object(value, where).items()
    }


def _one_of(allowed: tuple[Any, ...], value: Any, where: str) -> Any:
    if not isinstance(value, str) or value not in allowed:
        raise _wrong(value, where, f"one of {listed(allowed)}")
    return value


def _or_none(types: tuple[Any, ...], value: Any, where: str) -> Any:
    return None if value is None else built(types[types[0] is NoneType], value, where)


_SIMPLE: dict[Any, Callable[[Any, str], Any]] = {str: _text, bool: _truth, int: _whole, float: _number, Any: _anything}
_ORIGINS: dict[Any, Callable[[tuple[Any, ...], Any, str], Any]] = {
    tuple: _tuple,
    Mapping: _mapping,
    Literal: _one_of,
    UnionType: _or_none,
    Union: _or_none,
}
