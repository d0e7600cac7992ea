"""The token strips, the sentence, the controls and the bridge to the focus chart, as one component.

A slider of Streamlit's own would cost a round trip a step. This component finds the focus chart in its
keyed container, steps it in the browser, and tells Python which step has rested.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from transformer_viz.analysis.heads import Head, head_map
from transformer_viz.analysis.sentences import step_sentence
from transformer_viz.export.assets import asset
from transformer_viz.export.strips import answer_mark, output_strip, source_strip
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import plotly_js

FOCUS_KEY = "focus"
MOSAIC_KEY = "mosaic"
"""Keys of the containers in which the scripts find the charts."""


def data(
    trace: Trace,
    run: str,
    kind: Kind,
    layer: int,
    head: Head,
    step: int,
    *,
    hint: str,
    large: bool,
    dark: bool,
    with_answer: bool,
) -> dict[str, Any]:
    """What the component is sent, once per focus: every step's sentence, and the strips."""
    return {
        "run": run,
        "step": step,
        "hint": hint,
        "labels": {"output": "output tokens, one button a step", "slider": "Step"},
        "large": large,
        "dark": dark,
        "source": source_strip(trace),
        "output": output_strip(trace, with_answer=with_answer),
        "answer": answer_mark(trace, with_answer=with_answer),
        # A run without a decoder has one sentence all the same.
        "sentences": [
            step_sentence(trace, kind, layer, head, t, with_answer=with_answer) for t in range(max(1, trace.n_steps))
        ],
        "looked": _looked_at(trace, kind, layer, head),
    }


def show(content: dict[str, Any], on_step: Callable[[], None]) -> None:
    """Mounts the component; `on_step` finds a rested step with `rested`."""
    _component()(key="player", data={**content, "plotly": plotly_js.NAME}, on_step_change=on_step)


def rested() -> dict[str, Any]:
    """The run and the step at which the player has rested."""
    return (st.session_state.get("player") or {}).get("step") or {}


@cache
def _component() -> Any:
    """Registered once a process: the files are ours, what a user typed comes as data only."""
    ours = (Path(__file__).with_name(f"{part}.js").read_text(encoding="utf-8") for part in ("plotly", "player"))
    script = "\n".join([asset("player.js"), *ours])
    return st.components.v2.component("transformer-viz-player", html=asset("player.html"), css=asset("player.css"), js=script)


def _looked_at(trace: Trace, kind: Kind, layer: int, head: Head) -> list[int | None]:
    """The source position with the most weight at each step, for cross-attention."""
    if kind != "cross":
        return [None] * max(1, trace.n_steps)
    return [int(row.argmax()) if row.any() else None for row in head_map(trace, kind, layer, head)]
