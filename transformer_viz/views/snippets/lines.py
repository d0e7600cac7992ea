"""How a program is written: values as literals, calls that fit a line."""

import math
from collections.abc import Mapping
from typing import Any

WIDTH = 100


class Code(str):
    """A piece of the program itself, such as a variable's name; any other string is a text in it."""

    __slots__ = ()


def literal(value: Any) -> str:
    """What stands for a plain value in Python.

    Raises:
        TypeError: another type, whose `repr` might not be Python, or not be the same again.
        ValueError: a number that has no literal.
    """
    if isinstance(value, Code):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} has no literal")
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    if type(value) in (list, tuple):
        inner = ", ".join(map(literal, value))
        if type(value) is list:
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    raise TypeError(f"a program holds plain values, not {type(value).__name__}")


def call(function: str, *values: Any, **keywords: Any) -> Code:
    """A call on one line, or one argument a line where that is too long."""
    return assigned("", function, *values, **keywords)


def assigned(name: str, function: str, *values: Any, **keywords: Any) -> Code:
    """`name = function(…)`."""
    arguments = [*map(literal, values), *(f"{key}={literal(value)}" for key, value in keywords.items())]
    start = f"{name} = {function}(" if name else f"{function}("
    line = f"{start}{', '.join(arguments)})"
    if len(line) <= WIDTH:
        return Code(line)
    return Code("\n".join([start, *(f"    {argument}," for argument in arguments), ")"]))


def looks(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Those of a figure's looks that it has and that differ from its defaults."""
    return {name: given[name] for name in names if name in given and given[name] != _DEFAULTS[name]}


_DEFAULTS = {"theme": "light", "large": False, "narrow": False, "scale": "fixed"}
