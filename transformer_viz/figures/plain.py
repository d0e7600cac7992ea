"""Figures as plain data, which the app sends as they are.

Plotly checks every property of an object when it is made, a millisecond for each step of a player, and copies all to write
them down. For the charts of the step player that was half of what the server did between Enter and pictures; the app sends
the plain data that the public functions make Plotly's figures of.
"""

import base64
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import plotly.graph_objects as go

Plain = dict[str, Any]
"""A trace: its `type` and its properties, as in Plotly's reference."""


def heatmap(**properties: Any) -> Plain:
    """As `go.Heatmap`."""
    return {"type": "heatmap", **properties}


def scatter(**properties: Any) -> Plain:
    """As `go.Scatter`."""
    return {"type": "scatter", **properties}


def bar(**properties: Any) -> Plain:
    """As `go.Bar`."""
    return {"type": "bar", **properties}


@dataclass(frozen=True)
class PlainFigure:
    """What a Plotly figure is made of: traces, layout and frames, as in Plotly's reference. Arrays may be numpy's.

    A template is for Plotly's objects, and is not written.
    """

    data: list[Plain]
    layout: dict[str, Any]
    frames: list[dict[str, Any]] = field(default_factory=list)

    def to_plotly(self) -> go.Figure:
        """An ordinary figure of Plotly's, which checks all of it."""
        return go.Figure(self.data, self.layout, self.frames)

    def to_json(self) -> str:
        """As `to_json` of Plotly's figures, exact; a ValueError where a number by itself is none."""
        layout = {name: value for name, value in self.layout.items() if name != "template"}
        frames = {"frames": self.frames} if self.frames else {}
        figure = {"data": self.data, "layout": layout, **frames}
        return json.dumps(figure, default=_typed, allow_nan=False, separators=(",", ":"))


def _typed(array: Any) -> Plain:
    """A third of the bytes of a list, and no rounding."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"a figure has arrays and what JSON has, not {type(array).__name__}")
    data = np.ascontiguousarray(array)
    typed = {"dtype": data.dtype.str[1:], "bdata": base64.b64encode(data.tobytes()).decode()}
    return typed if data.ndim == 1 else {**typed, "shape": ", ".join(map(str, data.shape))}
