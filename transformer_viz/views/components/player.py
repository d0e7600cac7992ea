"""The player of *How it learned* as one component: token strips, sentence, controls, and the messages to the large chart.

A slider of Streamlit's own would cost a round trip a moment. This component finds the chart in its keyed container, steps it in
the browser, and tells Python which moment has rested.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from transformer_viz.viewer import modules
from transformer_viz.views.components import term_tips

FOCUS_KEY = "focus"
MOSAIC_KEY = "mosaic"
"""Keys of the charts, by which the scripts find them; after the second comes the kind."""


def show(content: dict[str, Any], on_step: Callable[[dict[str, Any]], None]) -> None:
    """Mounts the component.

    Args:
        content: for each moment a button, a sentence and what the model writes.
        on_step: gets the run and the step at which the player has rested, or nonsense.
    """

    def heard() -> None:
        report = (st.session_state.get("player") or {}).get("step")
        if isinstance(report, dict):
            on_step(report)

    _component()(key="player", data=content, on_step_change=heard)


@cache
def _component() -> Any:
    """Registered once a process: the files are ours, what a user typed comes as data only."""
    css = "\n".join([modules.styles("player.css"), term_tips.STYLE])
    js = "\n".join([modules.script("player.js"), Path(__file__).with_name("player.js").read_text(encoding="utf-8")])
    return st.components.v2.component("transformer-viz-player", html=modules.text("player.html"), css=css, js=js)
