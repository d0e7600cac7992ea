"""Figures as plain data, which the app sends as they are, and the public functions that make Plotly's figures of them.

Plotly checks every property of an object that is made (a millisecond for each step of a player), and copies all of it to write
JSON: that was half of the server's time between Enter and pictures. So each figure is drawn as plain data by one function;
`plotly_figure` turns that into the public function, and `plain` gives the first one back.
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, wraps
from inspect import signature, unwrap
from typing import Any, ParamSpec, cast

import numpy as np
import plotly.graph_objects as go

from transformer_viz.errors import OptionError, short_repr
from transformer_viz.figures.theme import Style

P = ParamSpec("P")
Plain = dict[str, Any]
"""A trace: its `type` and its properties, as in Plotly's reference."""
_SHOWN = {"displaylogo": False, "showSendToCloud": False}


heatmap: Callable[..., Plain] = partial(dict, type="heatmap")
"""A trace like `go.Heatmap`."""
scatter: Callable[..., Plain] = partial(dict, type="scatter")
"""A trace like `go.Scatter`."""
bar: Callable[..., Plain] = partial(dict, type="bar")
"""A trace like `go.Bar`."""


class Figure(go.Figure):
    """A Plotly figure that is shown, in a notebook too, without Plotly's logo and its button *Share chart*."""

    def show(self, *args: Any, config: dict[str, Any] | None = None, **kwargs: Any) -> Any:
        """Shows the figure as Plotly does; `config` may switch both on again."""
        return super().show(*args, config={**_SHOWN, **(config or {})}, **kwargs)

    def to_html(self, *args: Any, config: dict[str, Any] | None = None, **kwargs: Any) -> str:
        """Makes Plotly's HTML, with `config` as in `show`."""
        return super().to_html(*args, config={**_SHOWN, **(config or {})}, **kwargs)

    def write_html(self, *args: Any, config: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Writes Plotly's HTML to a file, with `config` as in `show`."""
        super().write_html(*args, config={**_SHOWN, **(config or {})}, **kwargs)

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return super()._repr_mimebundle_(*args, **{"config": _SHOWN, **kwargs})

    def _ipython_display_(self) -> None:
        self.show()


@dataclass(frozen=True)
class PlainFigure:
    """The parts of a Plotly figure: traces, layout and frames, as in Plotly's reference. Arrays may be numpy's."""

    data: list[Plain]
    layout: dict[str, Any]
    frames: list[dict[str, Any]] = field(default_factory=list)

    def to_plotly(self) -> go.Figure:
        """An ordinary figure of Plotly's, which checks all of it, without the colours of a template."""
        return Figure(self.data, {"template": go.layout.Template(), **self.layout}, self.frames)

    def to_json(self) -> str:
        """The JSON that Plotly's `to_json` gives, exact; a ValueError where a number by itself is none."""
        figure = {"data": self.data, "layout": self.layout, **({"frames": self.frames} if self.frames else {})}
        return json.dumps(figure, default=typed, allow_nan=False, separators=(",", ":"))


def plotly_figure(draw: Callable[P, PlainFigure]) -> Callable[P, go.Figure]:
    """A decorator: the function returns what it draws as an ordinary figure of Plotly's."""

    @wraps(draw)
    def figure(*args: P.args, **kwargs: P.kwargs) -> go.Figure:
        if not isinstance(style := kwargs.get("style", Style()), Style):
            raise OptionError(f'style={short_repr(style)} is no style; give one such as tv.figures.Style("dark", large=True)')
        return draw(*args, **kwargs).to_plotly()

    vars(figure)["__signature__"] = signature(draw).replace(return_annotation=go.Figure)
    return figure


def plain(figure: Callable[P, go.Figure]) -> Callable[P, PlainFigure]:
    """The function under `plotly_figure`, which returns plain data."""
    return cast(Callable[P, PlainFigure], unwrap(figure))


def typed(array: Any) -> Any:
    """An array as base64: a third of the bytes of a list, and unrounded. Browsers have no 64-bit whole numbers."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"a figure has arrays and what JSON has, not {type(array).__name__}")
    if array.dtype.kind not in "iuf" or array.dtype in (np.int64, np.uint64):
        return array.tolist()
    data = np.ascontiguousarray(array)
    typed = {"dtype": data.dtype.str[1:], "bdata": base64.b64encode(data.tobytes()).decode()}
    return typed if data.ndim == 1 else {**typed, "shape": ", ".join(map(str, data.shape))}
