"""“Show the code”: below each view, the few lines that make again what is on the screen."""

from typing import Any

import streamlit as st

from transformer_viz.checkpoints import Checkpoint
from transformer_viz.export.programs.runs import Run
from transformer_viz.trace.trace import Trace
from transformer_viz.views.parts import charts, style


class Place:
    """Where a page's code stands, for a fragment that stands above it and moves on without it."""

    def __init__(self) -> None:
        self._inside: Any = None

    def show(self, program: str, language: str = "python") -> None:
        """Once a run, at the place where it belongs."""
        with st.expander("Show the code", icon=":material/code:"):
            self._inside = st.empty()
        self.again(program, language)

    def again(self, program: str, language: str = "python") -> None:
        """Other lines in the same place, if there is one yet."""
        if self._inside is not None:
            self._inside.code(program, language=language)


def show(program: str, language: str = "python") -> None:
    """The lines, behind a fold."""
    Place().show(program, language)


def run_of(trace: Trace, checkpoint: Checkpoint, device: str) -> Run:
    """How the run on the screen is made; of a search, the branch that is shown."""
    if trace.made_by.get("strategy") != "beam":
        return Run(trace.source, checkpoint.name, device)
    state = st.session_state
    decode = {"strategy": "beam", "beam_size": state.beam, "length_penalty": state.alpha, "stop": state.stop}
    return Run(trace.source, checkpoint.name, device, decode, state.chosen_node)


def looks() -> dict[str, Any]:
    """How the page draws."""
    state = st.session_state
    return {
        "theme": style.theme(),
        "large": bool(state.get("projector")),
        "with_answer": not state.get("hide_answer"),
        "narrow": charts.is_narrow(),
    }
