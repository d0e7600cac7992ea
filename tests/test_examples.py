"""Every public function says what it takes and returns, and its examples give what they say."""

import doctest
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import transformer_viz as tv

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: inspect.unwrap(part) for name in tv.__all__ if inspect.isfunction(part := getattr(tv, name))
}
CLASSES: tuple[type, ...] = (tv.HeadAddress, tv.Tap)
WITHIN: dict[str, Callable[..., Any]] = {
    "Trace.from_arrays": vars(tv.Trace)["from_arrays"].__func__,
    **{f"export.{name}": inspect.unwrap(getattr(tv.export, name)) for name in ("html", "save")},
    **{f"figures.{name}": inspect.unwrap(getattr(tv.figures, name)) for name in ("attention", "player")},
}
"""Functions that are found in a module or a class of the package."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_takes_and_returns(name: str) -> None:
    text, parameters = FUNCTIONS[name].__doc__ or "", inspect.signature(FUNCTIONS[name]).parameters
    assert "Returns:" in text or inspect.signature(FUNCTIONS[name]).return_annotation is None
    is_as_another = "\n        options: as in `" in text
    own = [one for one in parameters if not is_as_another or one in ("model", "text", "target")]
    lacking = [parameter for parameter in own if f"\n        {parameter}: " not in text]
    assert not lacking


@pytest.mark.parametrize("what", [*FUNCTIONS.values(), *CLASSES, *WITHIN.values()], ids=lambda what: what.__qualname__)
def test_an_example_gives_what_it_says(what: Any) -> None:
    found = [test for test in doctest.DocTestFinder(recurse=False).find(what, what.__name__, globs={}) if test.examples]
    assert found, f"{what.__name__} has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said: list[str] = []
    for test in found:
        runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)


def test_a_result_is_one_line_in_a_notebook() -> None:
    model = tv.load_checkpoint("reverse-small", device="cpu")
    a, b = (tv.decode(model, text) for text in ("planet", "planes"))
    results = (
        tv.knock_out(model, [a], heads=["cross.1.1"]),
        tv.judge_attention(model, a, methods=[]),
        tv.attribute(model, a, "rollout"),
        tv.counter_proof(model, a, scope="cross.1.1"),
        tv.patch(model, a, b, where="cross"),
        tv.alignment_heads(model, ["ab"], effect=False),
        tv.compare(a, b),
        tv.diff(a, b),
        tv.inspect_head(model, a, "cross.1.1", query=0),
        tv.survey(model, ["ab"], verdict_texts=0),
        a,
        model,
    )
    for result in results:
        assert type(result).__name__ in repr(result) and "\n" not in repr(result) and len(repr(result)) < 200
