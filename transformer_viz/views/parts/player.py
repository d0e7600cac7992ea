"""The token strips, the sentence, the controls and the bridge to the focus chart, as one component.

Streamlit reports no click on a heatmap, and a slider of its own would cost a round trip a step. This
component finds the focus chart in its keyed container, steps it in the browser, and tells Python
which step has rested.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from transformer_viz.analysis.heads import Head, head_map
from transformer_viz.analysis.sentences import step_sentence
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import SPECIAL_TOKENS

_FOLDER = Path(__file__).parent
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
        "sentences": [step_sentence(trace, kind, layer, head, t, with_answer=with_answer) for t in range(len(trace.steps))],
        "looked": _looked_at(trace, kind, layer, head),
    }


def show(content: dict[str, Any], on_step: Callable[[], None]) -> None:
    """Mounts the component; `on_step` finds a rested step with `rested`."""
    _component()(key="player", data=content, on_step_change=on_step)


def rested() -> dict[str, Any]:
    """The run and the step at which the player has rested."""
    return (st.session_state.get("player") or {}).get("step") or {}


@cache
def _component() -> Any:
    """Registered once a process: the files are ours, what a user typed comes as data only."""
    html, css, js = ((_FOLDER / f"player.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    return st.components.v2.component("transformer-viz-player", html=html, css=css, js=js)


def source_strip(trace: Trace) -> list[dict[str, Any]]:
    """What the encoder read, one cell a token."""
    return [_source_token(token, place) for place, token in enumerate(trace.source_tokens)]


def output_strip(trace: Trace, *, with_answer: bool = True) -> list[dict[str, Any]]:
    """What was written, one cell a step."""
    return [_output_token(trace, t, with_answer) for t in range(len(trace.steps))]


def _source_token(token: str, place: int) -> dict[str, Any]:
    return {"text": _glyph(token), "title": f"position {place + 1}: {token}", "class": _class(token)}


def _output_token(trace: Trace, t: int, with_answer: bool) -> dict[str, Any]:
    step, true = trace.steps[t], trace.true_token(t)
    is_wrong = with_answer and true is not None and true != step.token
    return {
        "text": _glyph(step.token),
        "title": f"step {t + 1}: {step.token}, p = {step.probability:.4f}" + (f"; right would be {true}" if is_wrong else ""),
        "class": _class(step.token) + (" wrong" if is_wrong else ""),
        "tint": round(step.probability, 4),
    }


def _looked_at(trace: Trace, kind: Kind, layer: int, head: Head) -> list[int | None]:
    """The source position with the most weight at each step, for cross-attention."""
    if kind != "cross":
        return [None] * len(trace.steps)
    return [int(row.argmax()) if row.any() else None for row in head_map(trace, kind, layer, head)]


def _glyph(token: str) -> str:
    return token.replace(" ", "␣")


def _class(token: str) -> str:
    return "special" if token in SPECIAL_TOKENS else ""
