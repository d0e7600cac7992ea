"""Functions that stand for each other have the same keywords, with the same types and defaults."""

import inspect
import typing
from collections.abc import Callable
from typing import Any

import pytest

import transformer_viz as tv
from transformer_viz.export.content import FileOptions, ShownOptions
from transformer_viz.tracing.decode_request import DecodeKeywords


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
