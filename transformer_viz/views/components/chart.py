"""The component that draws every Plotly figure of the pages.

Streamlit's own chart is mounted anew whenever its figure changes, and drawn twice; this one stays, and is told the new figure.
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from transformer_viz.export import assets
from transformer_viz.views.components import figure_file, plotly_js, style
from transformer_viz.views.components.clicks import Clicks
from transformer_viz.views.components.recorded_calls import call

NAME = "transformer-viz-chart"
"""Of the component, by which a test tells a chart from the page's widgets."""
R = TypeVar("R")


def draw(
    function: Callable[..., R], *args: Any, key: str, words: str, file: str = "", clicks: Clicks | None = None, **options: Any
) -> R:
    """Calls a figure function in the page's style, shows its figure in the chart `key`, and returns it.

    Args:
        function: of `tv.figures`, or the one that makes plain data of such a figure; "Show the code" has the call.
        args: of the function.
        key: of the chart, as of `show`.
        words: what a screen reader says of it.
        file: the name under which the figure is offered as a file, without its ending; without one it is not offered.
        clicks: what a click on it is, and who hears it.
        options: keywords of the function.
    """
    figure = call(function, *args, **{"style": style.figure_style(), **options})
    show(figure, key, words, clicks=clicks)
    if file:
        figure_file.offer(figure, file)
    return figure


def show(
    figure: Any,
    key: str,
    words: str,
    *,
    run: str | None = None,
    title: str = "",
    clicks: Clicks | None = None,
    unfolds: int | None = None,
) -> None:
    """Draws a figure into the chart `key`.

    Args:
        figure: a Plotly figure, or plain data of one, with its frames.
        key: tells this chart from the page's others; the same key is the same chart.
        words: what a screen reader says of it.
        run: tells the run that it shows from others, in the browser.
        title: above a picture that somebody saves, and its file's name; without one the page's.
        clicks: what a click on it is, and who hears it.
        unfolds: the step that the player is at, from 0, where what later steps do is not to be seen: it has no name on the axes
            and no row in small maps.
    """
    about: dict[str, Any] = {
        "words": words,
        "run": run,
        "title": title,
        "clicks": clicks.on if clicks else None,
        "plotly": plotly_js.NAME,
    }
    about["unfolds"] = unfolds
    # The figure is JSON already, and bytes leave as they are.
    data = f'{json.dumps(about)[:-1]}, "figure": {figure.to_json()}}}'.encode()
    heard = {"on_click_change": lambda: clicks.heard((st.session_state.get(key) or {}).get("click"))} if clicks else {}
    _component()(key=key, data=data, **heard)


@cache
def _component() -> Any:
    """Registered once a process: the files are ours, what a user typed comes as data only."""
    html = '<div class="charted"><div class="chart" role="figure"></div></div>'
    js = f"{assets.script('arrays.js', 'charts.js')}\n{Path(__file__).with_suffix('.js').read_text(encoding='utf-8')}"
    # Outside of a shadow, where Plotly's rules of style reach it.
    return st.components.v2.component(NAME, html=html, css=assets.asset("charts.css"), js=js, isolate_styles=False)
