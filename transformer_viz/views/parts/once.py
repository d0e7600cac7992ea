"""Makes Streamlit's second drawing of a chart a matter of comparing.

Streamlit mounts every chart that changed anew and draws it twice. The second time nothing has changed, but Plotly finds changes
in four things: a template, `layout.shapes`, an object as `layout.meta`, and arrays that are new objects with the same numbers.
The charts of the step player have neither of the first (`figures.bare`, and lines in place of shapes); the others are put
right here. The film of a training still has a shape, and is drawn twice.
"""

from typing import Any

from transformer_viz.figures.bare import BareFigure


def once(figure: BareFigure, **known: Any) -> BareFigure:
    """The same figure, ready for `st.plotly_chart`. Scripts find its `layout.meta`, with what is `known`, as `layout.meta[0]`.

    A chart never gets other numbers later: another figure is another chart. So one revision does for all.
    """
    # An array is compared by the revision, an object by identity. The width is explicit at the second drawing only.
    figure.update_layout(meta=[{**(figure.layout.meta or {}), **known}], datarevision=1, autosize=True)
    return figure
