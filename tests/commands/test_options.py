"""A function makes its options: what is on the line becomes its arguments, and what cannot be is said."""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest

import transformer_viz as tv
from transformer_viz.commands._options import Option, Settings, add_options, arguments_of
from transformer_viz.errors import OptionError
from transformer_viz.schema import Choice, Range


class Keywords(TypedDict, total=False):
    width: Annotated[int | None, "how wide", Range(1, 9)]
    is_even: bool | None


@dataclass
class Size:
    n_rows: int = 3
    """How many rows."""
    colour: Literal["red", "green"] = "red"


@dataclass(frozen=True)
class Group:
    keywords: Annotated[dict[str, Any], Settings(Keywords)]
    size: Annotated[dict[str, Any], Settings(Size, "size", prefix="n_")]
    share: Annotated[float, "in 100 %", Range(0, 1, above=True)] = 0.5


def command(
    text: str,
    out: Annotated[Path, "where to", Option("-o")],
    group: Group,
    names: Annotated[list[Annotated[str, Choice(("ann", "bob"))]] | None, "who"] = None,
    pair: Annotated[list[int] | None, "two numbers", lambda text: [int(part) for part in text.split(",")]] = None,
    a: Annotated[str | None, "this", Option(either="one")] = None,
    b: Annotated[bool, "or that", Option(either="one")] = False,
    rest: Annotated[list[str] | None, "more", Option(is_argument=True)] = None,
) -> None:
    """Nothing is done."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise OptionError(message)


def parsed(line: str) -> dict[str, Any]:
    parser = Parser()
    add_options(parser, command)
    return arguments_of(command, parser.parse_args(line.split()))


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("t -o f", {}),
        ("t x y --out f", {"rest": ["x", "y"]}),
        ("t -o f --names ann --names bob --pair 3,4 --a z", {"names": ["ann", "bob"], "pair": [3, 4], "a": "z"}),
        ("t -o f --b --width 3 --no-is-even", {"b": True, "group": Group({"width": 3, "is_even": False}, {})}),
        ("t -o f --rows 5 --colour green --share 1", {"group": Group({}, {"n_rows": 5, "colour": "green"}, 1.0)}),
    ],
)
def test_the_line_becomes_arguments(line: str, changed: dict[str, Any]) -> None:
    defaults = {"names": None, "pair": None, "a": None, "b": False, "rest": [], "group": Group({}, {})}
    assert parsed(line) == {"text": "t", "out": Path("f"), **defaults, **changed}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-o f", "required: TEXT"),
        ("t", "required: -o/--out"),
        ("t -o f --width 10", "--width: '10' is not possible; it is a whole number from 1 to 9"),
        ("t -o f --share 0", "--share: '0' is not possible; it is a number above 0 and at most 1"),
        ("t -o f --share nan", "'nan' is not possible"),
        ("t -o f --rows many", "--rows: 'many' is no number"),
        ("t -o f --colour blue", "--colour: invalid choice: 'blue'"),
        ("t -o f --names eve", "--names: invalid choice: 'eve'"),
        ("t -o f --a x --b", "not allowed with argument --a"),
    ],
)
def test_what_cannot_be_is_said(line: str, words: str) -> None:
    with pytest.raises(OptionError, match=re.escape(words)):
        parsed(line)


def test_the_help_has_defaults_and_the_strings_below_fields() -> None:
    parser = Parser()
    add_options(parser, command)
    words = " ".join(parser.format_help().split())
    for part in ("--share N in 100 % (0.5)", "size: --rows N how many rows", "--is-even, --no-is-even", "--colour {red,green}"):
        assert part in words


@pytest.mark.parametrize(("keyword", "value"), [("top_k", 0), ("beam_size", 513), ("temperature", -1.0), ("stop", "soon")])
def test_python_and_the_command_line_have_the_same_limits(home: Path, mistake: Any, keyword: str, value: Any) -> None:
    """They are declared once, beside the keywords of `decode`."""
    strategy = "sample" if keyword in ("top_k", "temperature") else "beam"
    line = mistake("decode", "abc", "--checkpoint", "tiny", "--strategy", strategy, f"--{keyword.replace('_', '-')}={value}")
    keywords: Any = {"strategy": strategy, keyword: value}
    with pytest.raises(OptionError, match=keyword) as error:
        tv.decode(tv.load_checkpoint("tiny", "cpu"), "abc", **keywords)
    allowed = str(error.value).partition("; ")[2].removeprefix("it is one of ").removesuffix(", or null")
    assert allowed in line.replace("'", "")
