"""A figure whose frames are plain data until somebody asks for them.

Plotly checks every property of every frame when a figure is built: 5 ms a step, most of the time
between Enter and picture. These frames are made by us alone and are checked by the tests instead.
"""

from typing import Any

import plotly.graph_objects as go

from transformer_viz.figures.bare import BareFigure
from transformer_viz.figures.plain import packed


class FramedFigure(BareFigure):
    """A `BareFigure` with unchecked frames; numpy arrays in them travel as typed base64."""

    def __init__(
        self, data: Any = None, layout: Any = None, plain_frames: list[dict[str, Any]] | None = None, **options: Any
    ) -> None:
        super().__init__(data, layout, **options)
        self._plain_frames = [packed(frame) for frame in plain_frames or []]

    @property
    def frames(self) -> tuple[go.Frame, ...]:
        """The frames as Plotly objects."""
        return tuple(go.Frame(frame) for frame in self._plain_frames)

    @frames.setter
    def frames(self, new_frames: Any) -> None:
        self._plain_frames = [packed(go.Frame(frame).to_plotly_json()) for frame in new_frames]

    def to_dict(self) -> dict[str, Any]:
        """The figure as JSON-ready data, frames included."""
        return {**super().to_dict(), "frames": self._plain_frames}
