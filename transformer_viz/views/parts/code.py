"""“Show the code”: below each view, the few lines that make again what is on the screen."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from transformer_viz.export.programs.runs import Run
from transformer_viz.trace.trace import Trace
from transformer_viz.views.parts import charts, style

if TYPE_CHECKING:
    from transformer_viz.checkpoints import Checkpoint


def show(program: str, language: str = "python") -> None:
    """The lines, behind a fold; a command is broken where the column ends, as a terminal does."""
    place().code(program, language=language, wrap_lines=language != "python")


def place() -> Any:
    """The fold, with an empty place inside.

    For a page whose player is a fragment that moves on alone: it may write to a place outside of it only if that was
    there before it, in the whole run too. So the page makes room above, then this place, then what goes above.
    """
    with st.expander("Show the code", icon=":material/code:"):
        return st.empty()


def run_of(trace: Trace, checkpoint: "Checkpoint", device: str) -> Run:
    """How the run on the screen is made; of a search, the branch that is shown."""
    kept = {name: trace.made_by[name] for name in ("kinds", "layers", "precision") if name in trace.made_by}
    if trace.made_by.get("strategy") != "beam":
        return Run(trace.source, checkpoint.name, device, kept)
    state = st.session_state
    decode = {"strategy": "beam", "beam_size": state.beam, "length_penalty": state.alpha, "stop": state.stop, **kept}
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
