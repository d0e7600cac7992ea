"""Reads the files of exported pages (templates, CSS, JavaScript); the app uses some of them for the same step player."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from transformer_viz.figures.figure_data import typed

_FOLDER = Path(__file__).parent / "page"
PLAYER_SCRIPTS = ("arrays.js", "charts.js", "pieces.js", "player.js", "lines.js", "aligned.js", "highlight.js")
"""The step player and linked pointing, in the app too."""


@cache
def asset(name: str) -> str:
    """The text of a file of `page/`."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def script(*names: str) -> str:
    """Several files, one after the other."""
    return "\n".join(map(asset, names))


@cache
def templates() -> Environment:
    """The templates of `page/`; what is put into them is text, not markup, and in data an array is bytes, as in figures."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "default": typed}
    return environment
