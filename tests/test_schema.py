"""The types of the schema: what each takes, what it refuses, and in which words."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from transformer_viz.errors import ConfigError, FileError, OptionError
from transformer_viz.schema import Range, Share, check_fields, finite_number, read_value, to_plain, whole_number

Colour = Literal["red", "green"]


@dataclass(frozen=True)
class Point:
    x: Annotated[int, Range(0, 9)]
    y: Annotated[float, Range(0, 1, below=True)] = 0.5

    def __post_init__(self) -> None:
        check_fields(self, ConfigError)
        if self.x == self.y:
            raise ConfigError("x and y are one")


WRONG: list[Any] = [None, True, 7, -1, 0.5, 10**400, "x", "3", [], [1], {}, {"a": 1}, {"x": 1}, math.nan, math.inf]
"""Of which each type takes those that its row says."""
TYPES: list[tuple[Any, list[Any], str]] = [
    (int, [7, -1], "a whole number"),
    (Annotated[int, Range(0, 9)], [7], "a whole number from 0 to 9"),
    (Annotated[int, Range(0, 2**53)], [7], "a whole number at least 0"),
    (float, [7, -1, 0.5], "a finite number"),
    (Annotated[float, Range(0, 1, above=True, below=True)], [0.5], "a number above 0 and below 1"),
    (Annotated[float, Range(-1)], [7, -1, 0.5], "a number at least -1"),
    (Annotated[float, Range(has_nan=True)], [None, 7, -1, 0.5], "a finite number, or null"),
    (Share, [0.5], "a number from 0 to 1"),
    (str, ["x", "3"], "text of 0 to 2,000 characters"),
    (Annotated[str, Range(2, 3)], [], "text of 2 to 3 characters"),
    (bool, [True], "true or false"),
    (Colour, [], "one of red, green"),
    (tuple[int, ...], [[], [1]], "a list"),
    (tuple[int, int], [], "a list of 2"),
    (Annotated[tuple[int, ...], Range(1, 5)], [[1]], "a list of 1 to 5 entries"),
    (Mapping[str, int], [{}, {"a": 1}, {"x": 1}], "an object"),
    (Annotated[Mapping[str, int], Range(0, 0)], [{}], "an object of 0 to 0 entries"),
    (Mapping[Colour, int], [{}], "an object"),
    (int | None, [None, 7, -1], "a whole number, or null"),
    (str | float | None, [None, 7, -1, 0.5, "x", "3"], "text of 0 to 2,000 characters, or a finite number, or null"),
    (Point, [{"x": 1}], "an object"),
    (Any, [], ""),
]


@pytest.mark.parametrize(("kind", "taken", "words"), TYPES, ids=lambda value: str(value)[:60])
def test_each_type_takes_its_values_and_refuses_all_others(kind: Any, taken: list[Any], words: str) -> None:
    for value in WRONG:
        if any(type(value) is type(one) and value == one for one in taken) or kind is Any:
            read_value(kind, value, "it")
            continue
        with pytest.raises(FileError) as caught:
            read_value(kind, value, "here")
        if not isinstance(value, list | dict):
            assert str(caught.value).startswith("here=") and str(caught.value).endswith(f" is not possible; it is {words}")


@dataclass(frozen=True)
class Line:
    points: tuple[Point, ...]
    colour: Colour | None
    lengths: Mapping[str, float]


LINE = {"points": [{"x": 1, "y": 0.25}, {"x": 2}], "colour": None, "lengths": {"a": 3}}


def test_a_dataclass_comes_back() -> None:
    line = read_value(Line, LINE)
    assert line == Line(points=(Point(1, 0.25), Point(2)), colour=None, lengths={"a": 3.0})
    assert read_value(Line, json.loads(json.dumps(to_plain(line)))) == line
    assert to_plain((math.nan, math.inf, 1.5)) == [None, None, 1.5]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"points": [{"x": 1}, {"x": 10}]}, r"^points\[1\]\.x=10 is not possible; it is a whole number from 0 to 9$"),
        ({"points": [{"x": 1, "y": 1}]}, r"^points\[0\]\.y=1 is not possible; it is a number at least 0 and below 1$"),
        ({"points": [{"x": 0, "y": 0}]}, r"^points\[0\]: x and y are one$"),
        ({"points": [{"y": 0}]}, r"^points\[0\] lacks 'x'$"),
        ({"colour": "blue"}, "^colour='blue' is not possible; it is one of red, green, or null$"),
        ({"lengths": {"a": "x" * 10**6}}, r"^lengths\.a='xx.*xx' is not possible; it is a finite number$"),
        ({"x" * 10**6: 1}, "^it has 'xx.*xx', which does not belong there; it has points, colour, lengths$"),
    ],
)
def test_a_refusal_says_where_what_and_what_is_possible(change: dict[str, Any], words: str) -> None:
    with pytest.raises(FileError, match=words) as caught:
        read_value(Line, {**LINE, **change})
    assert len(str(caught.value)) < 200


def test_what_is_made_in_python_is_checked_too() -> None:
    with pytest.raises(ConfigError, match=r"^y=nan is not possible; it is a number at least 0 and below 1$"):
        Point(1, math.nan)
    with pytest.raises(OptionError, match=r"^size=True is not possible; it is a whole number from 1 to 3$"):
        whole_number("size", True, 1, 3)
    with pytest.raises(OptionError, match=r"^share='x' is not possible; it is a number from 0 to 0\.5$"):
        finite_number("share", "x", 0, 0.5)
    assert (whole_number("size", 3, 1, 3), finite_number("share", 0, 0, 0.5)) == (3, 0.0)
