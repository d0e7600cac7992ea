"""What the help of a public function shows, every keyword with its type and its default; and how long functions may be."""

import ast
import inspect
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import transformer_viz as tv
from transformer_viz.tracing.decode_request import DecodeKeywords


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public callable under the name by which a user calls it; the methods of public classes too."""
    for place, names in ((tv, tv.__all__), *((part, part.__all__) for part in (tv.analysis, tv.export, tv.figures))):
        for name in names:
            found = getattr(place, name)
            called = f"{place.__name__.replace('transformer_viz', 'tv', 1)}.{name}"
            if inspect.isclass(found):
                yield from ((f"{called}.{own}", getattr(found, own)) for own in methods(found))
            elif callable(found):
                yield called, found


def methods(of: type) -> list[str]:
    own = [
        name for name, value in vars(of).items() if inspect.isfunction(value) or isinstance(value, classmethod | staticmethod)
    ]
    return [name for name in own if not name.startswith("_")]


PUBLIC = dict(public())


@pytest.mark.parametrize("name", PUBLIC)
def test_the_help_shows_every_keyword(name):
    """Guards keywords behind `**options`, of which the help says neither the names nor the types."""
    hidden = [str(p) for p in inspect.signature(PUBLIC[name]).parameters.values() if p.kind is p.VAR_KEYWORD]
    assert not hidden, f"{name} hides its keywords behind {hidden[0]}"
    bare = [p.name for p in inspect.signature(PUBLIC[name]).parameters.values() if p.annotation is p.empty]
    assert set(bare) <= {"self", "cls"}, f"{name}: the type of {bare[0]} is not said"


def test_the_walk_finds_the_public_functions():
    """Guards a walk that finds nothing and passes."""
    assert {"tv.decode", "tv.trace_size", "tv.replay", "tv.check_masks", "tv.figures.mosaic", "tv.export.save"} <= PUBLIC.keys()
    assert "tv.Trace.from_arrays" in PUBLIC


def keywords(function: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """Type and default of each keyword-only parameter."""
    found = inspect.signature(function).parameters.values()
    return {p.name: (p.annotation, p.default) for p in found if p.kind is p.KEYWORD_ONLY}


def test_decode_and_its_size_are_asked_for_with_the_same_keywords():
    """They are written out in four places, since no type of today's Python can say them once for the help and for overloads."""
    asked = keywords(tv.decode)
    assert keywords(tv.trace_size) == asked
    types = {name: annotation for name, (annotation, _) in asked.items() if name != "target"}
    assert typing.get_type_hints(DecodeKeywords) == types
    overloads = typing.get_overloads(tv.decode)
    assert len(overloads) == 2
    for overload in overloads:
        assert {name: annotation for name, (annotation, _) in keywords(overload).items() if name != "target"} == types


MOST_LINES, MOST_PARAMETERS = 40, 8
"""Of a function: lines without its docstring, and parameters unless it is public."""
ROOT = Path(tv.__file__).parent


Definition = ast.FunctionDef | ast.AsyncFunctionDef


def definitions(node: ast.AST, within: str = "") -> Iterator[tuple[str, Definition]]:
    """Every function under a node with its qualified name; those inside of functions and classes too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield within + child.name, child
        is_named = isinstance(child, Definition | ast.ClassDef)
        yield from definitions(child, f"{within}{child.name}." if is_named else within)


def n_lines(function: Definition) -> int:
    first, last = function.lineno, function.end_lineno
    assert last is not None
    said = function.body[0]
    if ast.get_docstring(function) is None or said.end_lineno is None:
        return last - first + 1
    return last - first + 1 - (said.end_lineno - said.lineno + 1)


def n_parameters(function: Definition) -> int:
    """But for `self` and `cls`."""
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    more = (given.vararg is not None) + (given.kwarg is not None)
    return len(names) + more - (names[:1] in (["self"], ["cls"]))


def all_definitions() -> Iterator[tuple[str, Definition]]:
    for file in sorted(ROOT.rglob("*.py")):
        for name, function in definitions(ast.parse(file.read_text(encoding="utf-8"))):
            yield f"{file.relative_to(ROOT).as_posix()}: {name}", function


def place_of(function: Callable[..., Any]) -> str:
    file = inspect.getsourcefile(inspect.unwrap(function))
    assert file is not None
    return f"{Path(file).relative_to(ROOT).as_posix()}: {getattr(function, '__qualname__', '')}"


def test_no_function_is_long():
    found = {place: n_lines(function) for place, function in all_definitions() if n_lines(function) > MOST_LINES}
    assert not found, f"over {MOST_LINES} lines: {found}"


def test_only_public_functions_have_many_parameters():
    is_public = set(map(place_of, PUBLIC.values()))
    found = {place: n_parameters(function) for place, function in all_definitions() if place not in is_public}
    found = {place: n for place, n in found.items() if n > MOST_PARAMETERS}
    assert not found, f"over {MOST_PARAMETERS} parameters: {found}"


def test_the_limits_count_what_they_say():
    """Guards a count that takes the docstring in, or a method's `self`."""
    [(name, function)] = definitions(ast.parse('class A:\n def f(self, a, *, b, **c):\n  """One.\n\n  Two.\n  """\n  return a'))
    assert (name, n_lines(function), n_parameters(function)) == ("A.f", 2, 3)
    places = dict(all_definitions())
    assert n_parameters(places["tracing/decode.py: decode"]) > MOST_PARAMETERS
    assert "trace/trace.py: Trace.from_arrays" in places
