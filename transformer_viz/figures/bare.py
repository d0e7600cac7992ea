"""A figure of plain data that is sent without a template.

Ours have a template that says nothing, since without any Plotly for Python puts its own in. A browser needs none, and a page
that stands by itself should say in its figures all that they are.
"""

from typing import Any

import plotly.graph_objects as go


class BareFigure(go.Figure):
    """A `go.Figure` whose data as JSON has no template; what it would say belongs into the figure itself.

    What it is made of is ours alone and not checked property by property; the tests do that. What is changed later is checked.
    """

    def __init__(self, data: Any = None, layout: Any = None, **options: Any) -> None:
        super().__init__(data, layout, **options, _validate=False)
        self._validate = True
        for part in (self.layout, *self.data):
            part._validate = True

    def to_dict(self) -> dict[str, Any]:
        """The figure as JSON-ready data."""
        figure = super().to_dict()
        return {**figure, "layout": {name: value for name, value in figure["layout"].items() if name != "template"}}
