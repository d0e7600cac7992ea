"""Which plotly.js the browser draws with: the one that Streamlit serves for charts of its own, or else Plotly's."""

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st


@cache
def file_name() -> str | None:
    """The file from which Streamlit serves plotly.js; None where this release of Streamlit has none that we know."""
    folder = Path(st.__file__).parent / "static" / "static" / "js"
    return next((path.name for path in sorted(folder.glob("PlotlyChart.*.js"))), None)


def provide() -> None:
    """Sends plotly.js along where Streamlit has none: 5 MB in a message, which a browser keeps."""
    if file_name() is None:
        _component()(key="plotly-js", height=1)


@cache
def _component() -> Any:
    from transformer_viz.figures import files

    return st.components.v2.component("transformer-viz-plotly", js=files.plotly_js() + "\nexport default () => {};\n")
