"""Traces as plain data.

Plotly checks every property of an object when it is made. For the four charts of the step player that was half of what the
server did between Enter and pictures; theirs are plain, and are checked by the tests instead (`BareFigure`).
"""

from typing import Any

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
