"""The component that draws every Plotly figure of the pages.

Streamlit's own chart is mounted anew whenever its figure changes, and drawn twice; this one stays, and is told the new figure.
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import streamlit as st

from transformer_viz import language
from transformer_viz.viewer import modules, plotly_js, script_words
from transformer_viz.views.components import presses, style
from transformer_viz.views.components.recorded_calls import call

NAME = "transformer-viz-chart"
"""The name of the component, by which a test tells a chart from the page's widgets."""
Clicks = tuple[Literal["cell", "point"], Callable[..., None]]
"""The thing that the browser finds under the pointer, and what is called with it: with query and key of a cell, of a label only
the one; or with a point's `customdata`."""
R = TypeVar("R")


def draw(
    function: Callable[..., R],
    *args: Any,
    key: str,
    words: str,
    file: str = "",
    clicks: Clicks | None = None,
    **options: Any,
) -> R:
    """Calls a figure function in the page's style, shows its figure in the chart `key`, and returns it.

    Args:
        function: of `tv.figures`, or the one that makes plain data of such a figure; "Show the code" has the call.
        args: of the function.
        key: of the chart, as of `show`.
        words: what a screen reader says of it.
        file: the name of a picture that somebody saves, without its ending; without one that of the page.
        clicks: what is called with a click on it; what is not in the run is for that to find out.
        options: keywords of the function.
    """
    figure = call(function, *args, **{"style": style.figure_style(), **options})
    show(figure, key, words, file=file, clicks=clicks)
    return figure


def show(
    figure: Any,
    key: str,
    words: str,
    *,
    run: str | None = None,
    file: str = "",
    clicks: Clicks | None = None,
) -> None:
    """Draws a figure into the chart `key`.

    Args:
        figure: a Plotly figure, or plain data of one, with its frames.
        key: tells this chart from the page's others; the same key is the same chart.
        words: what a screen reader says of it.
        run: tells the run that it shows from others, in the browser.
        file: as of `draw`.
        clicks: what is called with a click on it; what is not in the run is for that to find out.
    """
    on, act = clicks or (None, None)

    def clicked() -> None:
        """The browser says what it wants: nonsense is passed over."""
        if act is None:
            return
        for report in presses.new(key):
            if on == "point" and isinstance(report, int) and report >= 0:
                act(report)
            elif on == "cell" and isinstance(report, dict):
                cell = report.get("query"), report.get("key")
                if all(place is None or (isinstance(place, int) and 0 <= place < 512) for place in cell):
                    act(*cell)

    about = {"words": words, "run": run, "file": file, "clicks": on, "plotly": plotly_js.name()}
    # The figure is JSON already, and bytes leave as they are.
    data = f'{json.dumps(about)[:-1]}, "figure": {figure.to_json()}}}'.encode()
    _component(language.current())(key=key, data=data, **({"on_presses_change": clicked} if act else {}))


@cache
def _component(now: str) -> Any:
    """Registered once a process and language: the files are ours, what a user typed comes as data only."""
    html = '<div class="charted"><div class="chart" role="figure"></div></div>'
    shared = modules.script("cells.js", "charts.js", "presses.js", "table.js")
    js = f"{script_words.spoken(shared)}\n{Path(__file__).with_suffix('.js').read_text(encoding='utf-8')}"
    # Outside of a shadow, where Plotly's rules of style reach it.
    return st.components.v2.component(
        NAME + language.suffix(), html=html, css=modules.text("charts.css"), js=js, isolate_styles=False
    )
