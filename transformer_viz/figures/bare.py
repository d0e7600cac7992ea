"""A figure that is sent without a template.

Ours have one that says nothing, since without any Plotly for Python puts its own in. In the browser it would be a change
whenever the same figure is drawn a second time, as Streamlit does: all of it would be drawn again.
"""

from typing import Any

import plotly.graph_objects as go


class BareFigure(go.Figure):
    """A `go.Figure` whose data as JSON has no template; what it would say belongs into the figure itself."""

    def to_dict(self) -> dict[str, Any]:
        """The figure as JSON-ready data."""
        figure = super().to_dict()
        return {**figure, "layout": {name: value for name, value in figure["layout"].items() if name != "template"}}
