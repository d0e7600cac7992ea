"""What the help of a public function shows: every keyword with its type and its default."""

import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import transformer_viz as tv
from transformer_viz.export.content import FileOptions, ShownOptions
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


def test_decode_and_its_size_show_the_same_keywords():
    shown = keywords(tv.decode)
    assert keywords(tv.trace_size) == shown
    types = {name: annotation for name, (annotation, _) in shown.items() if name != "target"}
    assert typing.get_type_hints(DecodeKeywords) == types
    assert shown["candidates"][1] == 10 and shown["record"][1] == ("weights",) and shown["beam_size"][1] is None


def test_an_unknown_keyword_of_decode_is_refused(tiny):
    for function in (tv.decode, tv.trace_size):
        with pytest.raises(TypeError, match="beam_width"):
            function(tiny, "hello", beam_width=3)


@pytest.mark.parametrize("function", [tv.export.frame, tv.export.picture, tv.export.save])
def test_files_of_a_run_show_the_keywords_of_its_page(function):
    page = {p.name: (p.annotation, p.default) for p in inspect.signature(tv.export.html).parameters.values()}
    options = FileOptions if function is tv.export.save else ShownOptions
    assert {name: page[name] for name in options.__annotations__.keys() & page.keys()}.items() <= keywords(function).items()
    assert {*ShownOptions.__annotations__} <= page.keys()
