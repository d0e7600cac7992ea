"""Records the public calls that made a page's values, and writes them as the Python that makes these again.

A session remembers the call of every value that `record` is given, as long as the value lives, and no value: only calls and
plain arguments. From the values that a page shows `program` goes back to the calls that made them, and writes a line for each.
It needs no torch.
"""

import math
import re
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import is_dataclass
from inspect import Parameter, signature, unwrap
from typing import Any, TypeVar

import streamlit as st

import transformer_viz as tv

WIDTH = 100
_MADE = "made_by_calls"
_NAMES = {
    "load_model": "checkpoint",
    "load_snapshot": "snapshot",
    "with_languages": "checkpoint",
    "with_chat": "checkpoint",
    "with_generation": "checkpoint",
    "with_shortlist": "checkpoint",
    "decode": "trace",
    "load_trace": "trace",
    "at_node": "trace",
    "by_words": "trace",
    "with_attribution": "trace",
    "decode_batch": "traces",
    "decode_forced": "traces",
    "alignment": "grades",
    "attribute": "measure",
    "trace_training": "moments",
    "decode_untrained": "untrained",
    "inspect_head": "inside",
    "judge_attention": "verdicts",
    "measure_effect": "effect",
    "load_survey": "survey",
    "compare": "comparison",
    "compare_surveys": "comparison",
    "check_masks": "report",
    "explain": "explanation",
    "sample_texts": "texts",
    "to_frame": "table",
}
"""Variables by the function that makes their value; all others are called as their function is."""
_OF_THE_PAGE = ("max_trace_bytes", "on_progress", "on_token")
"""Keywords that change nothing of the result."""
_ITEM = "{0}[{1}]"
_MARK = re.compile("\0(\\d+)\0")
R = TypeVar("R")


class Call:
    """A call and its arguments, which may be calls themselves.

    Args:
        function: of the public names; a figure's may be the one that makes plain data of it. Or an expression with `{}` for
            each argument, after the name of a variable where it is to have one: `texts = {}`.
        args: its arguments.
        kwargs: its keyword arguments.
    """

    def __init__(self, function: Callable[..., Any] | str, /, *args: Any, **kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs

    def __call__(self) -> Any:
        """Returns what the function does, recorded."""
        assert not isinstance(self.function, str)
        return record(self.function(*self.args, **self.kwargs), self)


def call(function: Callable[..., R], /, *args: Any, **kwargs: Any) -> R:
    """Calls it, and records what it returns."""
    return Call(function, *args, **kwargs)()


def record(value: R, call: Call) -> R:
    """Remembers that this call makes this value: an object, or a list or tuple of some, each of which is remembered."""
    if id(value) in map(id, call.args):  # nothing was to be done
        return value
    made = st.session_state.setdefault(_MADE, {})
    call = Call(
        call.function, *map(_origin, call.args), **dict(zip(call.kwargs, map(_origin, call.kwargs.values()), strict=True))
    )
    items = [(value, call)]
    if isinstance(value, list | tuple):
        items = [(item, Call(_ITEM, call, place, len(value))) for place, item in enumerate(value)]
    for item, of_item in items:
        key = id(item)
        with suppress(TypeError):  # a number or a text, which is written as it is
            made[key] = (weakref.ref(item, lambda _, key=key: made.pop(key, None)), of_item)
    return value


def _origin(value: Any) -> Any:
    """The call that made a value; a value that none made, itself."""
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(map(_origin, value))
    return st.session_state.get(_MADE, {}).get(id(value), (None, value))[1]


def program(*statements: Any) -> str:
    """The lines that end with these statements: recorded values, of which figures are shown, and calls, whose result has no
    name.

    Raises:
        TypeError: a value that no call made, and that is not plain.
        ValueError: a number that has no literal.
    """
    return _Program(statements).text


def public_name(function: Any) -> str:
    """`tv.figures.player`; of what has no public name the bare one."""
    name = function.__name__
    for path, part in (("tv", tv), ("tv.figures", tv.figures), ("tv.analysis", tv.analysis), ("tv.export", tv.export)):
        if unwrap(getattr(part, name, int)) is unwrap(function):
            return f"{path}.{name}"
    return name


class _Line:
    """`name = start + arguments + end`, or without a name; other lines' variables are marks in it."""

    def __init__(self, name: str, start: str, arguments: list[str], end: str) -> None:
        self.name, self.start, self.arguments, self.end = name, start, arguments, end

    @property
    def text(self) -> str:
        return f"{self.start}{', '.join(self.arguments)}{self.end}"

    def written(self, name: str, in_full: Callable[[str], str]) -> str:
        """On one line, or one argument a line where that is too long."""
        start = f"{name} = {self.start}" if name else self.start
        line = in_full(f"{start}{', '.join(self.arguments)}{self.end}")
        if len(line) <= WIDTH or not self.arguments:
            return line
        return in_full("\n".join([start, *(f"    {argument}," for argument in self.arguments), self.end]))


class _Program:
    """Lines in the order of what they need; an expression that was written before is not written again."""

    def __init__(self, statements: tuple[Any, ...]) -> None:
        self._lines: list[_Line] = []
        self._known: dict[str, str] = {}
        self._imports = {"import transformer_viz as tv": None}
        self._results: list[int] = []
        for statement in statements:
            self._state(statement)
        self.text = "\n".join([*self._imports, "", *self._written()])

    def _state(self, statement: Any) -> None:
        made = _origin(statement)
        is_function = isinstance(made, Call) and not isinstance(made.function, str)
        is_figure = is_function and public_name(made.function).startswith("tv.figures.")
        if is_function and made is statement and not is_figure:
            self._lines.append(self._line(made.function, made, with_name=False))
            return
        piece = self._piece(made)
        self._results += [int(mark) for mark in _MARK.findall(piece)]
        if is_figure:
            self._lines.append(_Line("", f"{piece}.show()", [], ""))
        elif _MARK.fullmatch(piece) is None:
            self._lines.append(_Line("", piece, [], ""))

    def _piece(self, value: Any) -> str:
        """Writes a value: as the variable of what made it, or as a literal."""
        made = _origin(value)
        if isinstance(made, Call):
            return self._of_call(made)
        if type(made) in (list, tuple):
            return self._of_items(made)
        if is_dataclass(made) and not isinstance(made, type):
            parts = ", ".join(self._arguments(type(made), Call(type(made), **vars(made))))
            return f"{self._named(type(made))}({parts})"
        return literal(made)

    def _of_items(self, values: list[Any] | tuple[Any, ...]) -> str:
        """Writes all items of what a call made as that, others as a list or a tuple."""
        items = [value.args for value in values if isinstance(value, Call) and value.function == _ITEM]
        if items and items == [(items[0][0], place, len(values)) for place in range(items[0][2])]:
            return self._piece(items[0][0])
        inner = ", ".join(map(self._piece, values))
        if isinstance(values, list):
            return f"[{inner}]"
        return f"({inner},)" if len(values) == 1 else f"({inner})"

    def _of_call(self, made: Call) -> str:
        function = made.function
        if not isinstance(function, str):
            return self._variable(self._line(function, made))
        name, _, expression = function.partition(" = ") if re.match(r"\w+ = ", function) else ("", "", function)
        if expression == "{}" and isinstance(made.args[0], list):
            return self._variable(_Line(name, "[", [self._piece(item) for item in made.args[0]], "]"))
        piece = expression.format(*map(self._piece, made.args))
        return self._variable(_Line(name, piece, [], "")) if name else piece

    def _line(self, function: Any, made: Call, *, with_name: bool = True) -> _Line:
        """The call; a method's first argument is its object."""
        owner, _, name = function.__qualname__.rpartition(".")
        if public_name(function).startswith("tv.figures."):
            name = "figure"
        arguments = list(self._arguments(function, made))
        start = f"{arguments.pop(0)}.{name}" if owner else self._named(function)
        return _Line(_NAMES.get(name, name) if with_name else "", f"{start}(", arguments, ")")

    def _arguments(self, function: Any, made: Call) -> Iterator[str]:
        """Yields the arguments that are no defaults, by name where there is a default."""
        bound = signature(function).bind(*made.args, **made.kwargs)
        for name, value in bound.arguments.items():
            parameter = bound.signature.parameters[name]
            default = parameter.default
            if name in _OF_THE_PAGE or (type(value) is type(default) and value == default):
                continue
            is_by_name = default is not Parameter.empty or parameter.kind is Parameter.KEYWORD_ONLY
            yield f"{name}={self._piece(value)}" if is_by_name else self._piece(value)

    def _named(self, function: Any) -> str:
        """Names a function as the program calls it; what has no public name is imported."""
        name = public_name(function)
        if "." not in name:
            self._imports[f"from {function.__module__} import {name}"] = None
        return name

    def _variable(self, line: _Line) -> str:
        """A mark that stands for the variable of a line."""
        if (known := self._known.get(line.text)) is not None:
            return known
        self._lines.append(line)
        return self._known.setdefault(line.text, f"\0{len(self._lines) - 1}\0")

    def _written(self) -> Iterator[str]:
        """With names for the marks: that of a variable which nothing needs any more is given again."""
        needed = {int(mark): at for at, line in enumerate(self._lines) for mark in _MARK.findall(line.text)}
        needed |= dict.fromkeys(self._results, len(self._lines))
        holders: dict[str, int] = {}
        names: dict[int, str] = {}

        def in_full(line: str) -> str:
            return _MARK.sub(lambda mark: names[int(mark[1])], line)

        for at, line in enumerate(self._lines):
            name, number = line.name, 1
            while name and needed.get(holders.get(name, -1), -1) > at:
                number += 1
                name = f"{line.name}_{number}"
            written = line.written(name, in_full)
            names[at], holders[name] = name, at
            yield written


def literal(value: Any) -> str:
    """Writes a plain value in Python.

    Raises:
        TypeError: another type, whose `repr` might not be Python, or not be the same again.
        ValueError: a number that has no literal.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} has no literal")
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    raise TypeError(f"a program holds plain values, not {type(value).__name__}")
