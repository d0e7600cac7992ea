"""The keywords that `html`, `frame`, `picture` and `save` share."""

from os import PathLike
from typing import Any, Literal, TypedDict

from transformer_viz.export.content import PageTheme
from transformer_viz.figures.shades import Scale
from transformer_viz.terms import Head, Kind

PlotlyJs = bool | Literal["cdn", "packed"] | str | PathLike[str]
WIDTH, SCALE = 1200, 2.0
"""Pixels of a picture, and what is expected of a page; and the pixels of a PNG for each."""


class ShownOptions(TypedDict, total=False):
    """What is shown of a run, and how; `html` says more of each."""

    kind: Kind | None
    layer: int | None
    head: Head | None
    step: int | None
    theme: PageTheme
    large: bool
    with_answer: bool
    colours: Scale


class FileOptions(ShownOptions, total=False):
    """And of what belongs to a page alone, or to a picture alone."""

    plotlyjs: PlotlyJs
    aligner: str | None
    width: int
    height: int | None
    scale: float


DEFAULTS: dict[str, Any] = {
    **{"theme": "auto", "large": False, "with_answer": True, "colours": "fixed"},
    **{"plotlyjs": True, "width": WIDTH, "scale": SCALE},
}
"""Of these keywords; None of the others."""
