"""What “Show the code” writes: recorded calls as lines, and literals that cannot be broken out of."""

import ast
import math
from typing import Any

import numpy as np
import pytest
import streamlit as st
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import transformer_viz as tv
from transformer_viz.figures.figure_data import plain as plain_figure
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import recorded_calls
from transformer_viz.views.components.recorded_calls import WIDTH, Call, program, record

HOSTILE = "'\"\\\n\"\"\"\u2028\u202e\x00) ; {0} __import__('os').system('x') #"
plain = some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | some.text()
nested = some.recursive(
    plain, lambda inner: some.lists(inner, max_size=3) | some.lists(inner, max_size=3).map(tuple), max_leaves=6
)
of_one_session = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


class Value:
    """What a call made."""


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A session of its own."""
    state: dict[str, Any] = {}
    monkeypatch.setattr(st, "session_state", state)
    return state


def lines(*statements: Any) -> list[str]:
    first, empty, *rest = program(*statements).splitlines()
    assert (first, empty) == ("import transformer_viz as tv", "")
    return rest


def model(name: str = "reverse") -> Value:
    return record(Value(), Call(tv.load_model, name, "auto"))


def run(of: Any, text: str, **how: Any) -> Value:
    return record(Value(), Call(tv.decode, of, text, **how))


@of_one_session
@given(nested)
def test_a_literal_is_the_value_again(value):
    names: dict[str, Any] = {}
    exec("\n".join(lines(Call("again = {}", value))), names)
    assert names["again"] == value
    assert type(names["again"]) is type(value)


@pytest.mark.parametrize("value", [np.float32(1), np.int64(2), {"a": 1}, b"x", object(), [object()]])
def test_what_is_neither_plain_nor_recorded_is_refused(value):
    with pytest.raises(TypeError, match="plain values"):
        program(Call("x = {}", value))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_without_a_literal_is_refused(value):
    with pytest.raises(ValueError, match="no literal"):
        program(Call("x = {}", value))


def test_lines_stand_in_the_order_of_what_they_need_and_each_once():
    trace = run(of := model(), "hello")
    untrained = record(Value(), Call(tv.decode_untrained, of, trace))
    grades = record(Value(), Call(tv.analysis.alignment, trace, untrained))
    figure = record(Value(), Call(tv.figures.grades, grades, "mass", style=tv.figures.Style("dark")))
    assert lines(figure, Call("print({}.made_by)", run(model(), "hello"))) == [
        "checkpoint = tv.load_model('reverse')",
        "trace = tv.decode(checkpoint, 'hello')",
        "untrained = tv.decode_untrained(checkpoint, trace)",
        "grades = tv.analysis.alignment(trace, untrained=untrained)",
        "figure = tv.figures.grades(grades, style=tv.figures.Style(theme='dark'))",
        "figure.show()",
        "print(trace.made_by)",
    ]


def test_a_name_is_given_again_where_nothing_needs_its_value_any_more():
    trace = run(model(), "hello", strategy="beam")
    node = record(Value(), Call(Trace.at_node, trace, 3))
    words = record(Value(), Call(tv.by_words, node))
    made = ["checkpoint = tv.load_model('reverse')", "trace = tv.decode(checkpoint, 'hello', strategy='beam')"]
    assert lines(words) == [*made, "trace = trace.at_node(3)", "trace = tv.by_words(trace)"]
    assert lines(words, Call("print({}, {})", trace, words)) == [
        *made, "trace_2 = trace.at_node(3)", "trace_2 = tv.by_words(trace_2)", "print(trace, trace_2)"
    ]  # fmt: skip


def test_figures_by_their_public_names_without_defaults_and_without_limits_of_the_page():
    trace = run(model(), "a", max_trace_bytes=10, beam_size=None, ban=())
    calls = [
        Call(plain_figure(tv.figures.player), trace, "cross.2.1", 2, measure=None, style=tv.figures.Style()),
        Call(plain_figure(tv.figures.mosaic), trace, "cross", (0, 1)),
    ]
    assert lines(*calls)[1:] == [
        "trace = tv.decode(checkpoint, 'a')",
        "figure = tv.figures.player(trace, head='cross.2.1', step=2)",
        "figure.show()",
        "figure_2 = tv.figures.mosaic(trace, 'cross', focus=(0, 1))",
        "figure_2.show()",
    ]


def test_long_calls_have_a_line_for_each_argument():
    long = run(model(), "a" * 60, prefix=("b" * 40,), strategy="sample")
    written = lines(long, Call("texts = {}", ["c" * 70, "d" * 70]))[1:]
    assert written[0] == "trace = tv.decode("
    assert written[5:9] == [")", "texts = [", f"    '{'c' * 70}',", f"    '{'d' * 70}',"]
    assert max(map(len, written)) <= WIDTH


def test_what_was_typed_stays_a_text():
    """A program of hostile texts is the program of harmless ones, with other constants in the same places."""

    class Blank(ast.NodeTransformer):
        def visit_Constant(self, node: ast.Constant) -> ast.Constant:
            return ast.Constant("x" if isinstance(node.value, str) else node.value)

    def written(text: str) -> str:
        trace = run(model(text), text, prefix=(text,), edits=[text])
        sources = Call("texts = {}", [text])
        return program(
            Call("table = {0}[{0}.kind == {1}]", trace, text),
            Call(tv.export.save, trace, text),
            Call("traces = [tv.decode({}, text) for text in {}]", model(text), sources),
        )

    def bones(lines: str) -> str:
        return ast.dump(Blank().visit(ast.parse(lines)))

    hostile = written(HOSTILE)
    assert bones(hostile) == bones(written("harmless"))
    assert HOSTILE in {node.value for node in ast.walk(ast.parse(hostile)) if isinstance(node, ast.Constant)}
    assert all(symbol.isprintable() or symbol == "\n" for symbol in hostile)


def test_no_value_is_kept(session):
    trace = run(of := model(), "a")
    figure = record(Value(), Call(tv.figures.player, trace))
    del of, trace
    assert len(session[recorded_calls._MADE]) == 1
    assert lines(figure)[-2] == "figure = tv.figures.player(trace)"
    del figure
    assert not session[recorded_calls._MADE]
