"""What “Show the code” writes: literals that cannot be broken out of, calls that fit."""

import ast
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_viz.export.content import View
from transformer_viz.views.snippets import compare, explore, masks, replay
from transformer_viz.views.snippets.lines import WIDTH, Code, assigned, call, literal
from transformer_viz.views.snippets.runs import Batch, File, Run

HOSTILE = "'\"\\\n\"\"\"\u2028\u202e\x00) ; __import__('os').system('x') #"
LOOKS = {"theme": "dark", "large": True, "narrow": True}
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
nested = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple), max_leaves=6)


@given(nested)
def test_a_literal_is_the_value_again(value: Any) -> None:
    again = ast.literal_eval(literal(value))
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize("value", [np.float32(1), np.int64(2), {"a": 1}, b"x", object()])
def test_what_is_no_plain_value_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="plain values"):
        literal(value)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_without_a_literal_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="no literal"):
        literal(value)


@given(st.lists(st.text(), max_size=4), st.dictionaries(st.sampled_from(["a", "bb", "ccc"]), st.text()))
def test_a_call_is_one_call_with_these_arguments(values: list[str], keywords: dict[str, str]) -> None:
    parsed = ast.parse(call("f", *values, **keywords), mode="eval").body
    assert isinstance(parsed, ast.Call)
    assert [ast.literal_eval(argument) for argument in parsed.args] == values
    assert {keyword.arg: ast.literal_eval(keyword.value) for keyword in parsed.keywords} == keywords


def test_a_long_call_is_broken() -> None:
    short, long = assigned("x", "f", "a" * 40), assigned("x", "f", Code("y"), "a" * 60, key="b" * 40)
    assert "\n" not in short
    assert len(long.splitlines()) == 5
    assert max(map(len, long.splitlines())) <= WIDTH


def programs_with(text: str) -> list[str]:
    run, file = Run(text, text, text, {"strategy": "beam"}, node=3), File(text, node=3)
    asked = compare.Side(None, text, text, text, 8, {"strategy": "beam"}, reads_the_other=True)
    batch = Batch(text, (text, text), (text, None), (text,), text, text)
    at = masks.Focus(1, "decoder", 1, "mean")
    now = View("cross", 0, "max", 2)
    return [
        explore.player(run, now, LOOKS),
        explore.search(run, now, LOOKS),
        explore.player(file, now, LOOKS),
        explore.search(file, now, LOOKS),
        explore.heads(file, text, LOOKS, with_untrained=False),
        explore.masks_in_force(file, LOOKS, {"cross": (1, 2)}),
        explore.this_run(file),
        explore.file(file.whole(), text, {}),
        compare.lines(asked, compare.Side(text), "cross", 1, "mean", looks={"theme": text}),
        explore.what_if(run, {"prefix": [text], "target": text}, "cross", 0, 1, 1, LOOKS),
        explore.heads(run, text, LOOKS, with_untrained=True),
        explore.by_length(text, text, 20, LOOKS),
        explore.masks_in_force(run, LOOKS),
        explore.numbers(run, "cross", 0, 1),
        explore.this_run(run),
        explore.file(run, text, {"theme": text}),
        masks.masks(batch, 1, (0, 0), 1, LOOKS, only="cross"),
        masks.scores(batch, at, 2, text, text, 1, LOOKS),
        masks.change(batch, at, 300, LOOKS, with_effect=True),
        masks.mistakes(batch, with_effect=True),
        masks.certificate(batch),
        masks.loss(batch, LOOKS),
        replay.training_playback(Run(text, text, text), View("cross", 0, 1, 8), 2, LOOKS),
    ]


def test_what_was_typed_stays_a_text() -> None:
    """A program of hostile texts is the program of harmless ones, with other constants in the same places."""

    class Blank(ast.NodeTransformer):
        def visit_Constant(self, node: ast.Constant) -> ast.Constant:
            return ast.Constant("x" if isinstance(node.value, str) else node.value)

    def bones(program: str) -> str:
        return ast.dump(Blank().visit(ast.parse(program)))

    for hostile, harmless in zip(programs_with(HOSTILE), programs_with("harmless"), strict=True):
        assert bones(hostile) == bones(harmless)
        constants = {node.value for node in ast.walk(ast.parse(hostile)) if isinstance(node, ast.Constant)}
        assert HOSTILE in constants
        assert all(symbol.isprintable() or symbol == "\n" for symbol in hostile)
