"""Reads the files of exported pages: templates, style sheets, programs. Those of the viewer lie beside it."""

from functools import cache
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from transformer_viz.figures.figure_data import typed
from transformer_viz.language import say
from transformer_viz.viewer import modules

FOLDER = Path(__file__).parent / "page"


@cache
def asset(name: str) -> str:
    """The text of a file of `page/`."""
    return (FOLDER / name).read_text(encoding="utf-8")


def styles(*names: str) -> str:
    """Several style sheets, one after the other; what is not of `page/` is the viewer's."""
    return "\n".join(asset(name) if (FOLDER / name).exists() else modules.text(name) for name in names)


@cache
def templates() -> Environment:
    """The templates of `page/` and of the viewer; what is put into them is text, not markup. An array in data is bytes."""
    environment = Environment(
        loader=FileSystemLoader([FOLDER, modules.FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "default": typed}
    cast(dict[str, Any], environment.globals)["say"] = say
    return environment
