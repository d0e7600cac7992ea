"""“The model”: a drawing of the model with the attention in focus highlighted. While closed, nothing is sent."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import streamlit as st

from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model.architecture import Block, summary
from transformer_viz.trace.trace import Trace
from transformer_viz.views import glossary
from transformer_viz.views.components import drawing
from transformer_viz.views.state import focus, link

_TITLE = "The model"
_WIDE, _LARGE = 372, 470
"""Pixels."""


def switch(model: LoadedModel) -> None:
    """Opens and closes it, in a row of controls."""
    link.toggle(_TITLE, key="where", help=f"{glossary.sentence(_TITLE)}: {summary(model.architecture)}")


@contextmanager
def beside(trace: Trace, model: LoadedModel, *, large: bool) -> Generator[None]:
    """Where it is open, it stands left of what is drawn within; in a narrow window above it."""
    if not link.is_on("where"):
        yield
        return
    with st.container(horizontal=True, key="with-drawing"):
        with st.container(width=_LARGE if large else _WIDE, key="drawing-area"):
            now = focus.current()
            marks = drawing.Marks(
                focus=(now.kind, now.layer),
                head=f"head {now.head + 1}" if isinstance(now.head, int) else f"{now.head} of heads",
                may={(kind, layer) for kind in trace.kinds for layer in trace.attentions[kind].layers},
            )
            title = f"The model that runs: {summary(model.architecture)}."
            # The same head of another attention; one that it has not is not gone to (`focus.start`).
            drawing.show(
                model.architecture, title, "drawing", marks, large=large, on_press=lambda block, step: _go(block, step, trace)
            )
        with st.container(key="beside-drawing"):
            yield


def _go(block: Block, step: Any, trace: Trace) -> None:
    if block.kind in trace.kinds and block.layer in trace.attentions[block.kind].layers:
        st.session_state.kind, st.session_state.layer = block.kind, block.layer
    focus.go_to_step(step, trace)
