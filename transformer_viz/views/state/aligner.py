"""The aligning head of each model, chosen or found; it holds for every run of that model."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from transformer_viz.analysis.alignment_head import AlignmentHead, possible
from transformer_viz.language import later, say
from transformer_viz.trace.trace import Trace
from transformer_viz.views.state import link

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

KEY, NONE = "aligner", ""


def start(trace: Trace, model: "LoadedModel | None") -> None:
    """The link's, or what this session knows of the model; before its box is drawn."""
    state, name = st.session_state, _name(trace, model)
    if state.setdefault("aligner_of", name) != name:
        state.aligner_of, state[KEY] = name, _known().get(name, NONE)
    if (wanted := state.pop("aligner_wanted", None)) in possible(trace):
        state[KEY] = wanted.address
    _known()[name] = link.option(KEY, options(trace), NONE, said=lambda address: said(trace)[address])


def box(**looks: Any) -> None:
    """Chooses it; `start` has been called."""
    link.selectbox(say("Aligning head"), key=KEY, **looks)


def options(trace: Trace) -> dict[str, str]:
    """The choices of no head, and of every head of cross-attention in either row, with their words."""
    return {NONE: later("none"), **{each.address: str(each) for each in possible(trace)}}


def said(trace: Trace) -> dict[str, str]:
    """The same in the language of the visit."""
    return {NONE: say("none"), **{each.address: each.words for each in possible(trace)}}


def current(trace: Trace) -> AlignmentHead | None:
    """The one of the run on the screen."""
    return _of(trace, st.session_state.get(KEY, NONE))


def known(trace: Trace) -> AlignmentHead | None:
    """The one of any run, by the name of the model that made it."""
    return _of(trace, _known().get(_name(trace, None), NONE))


def _of(trace: Trace, address: str) -> AlignmentHead | None:
    found = AlignmentHead.read(address) if address else None
    return found if found in possible(trace) else None


def _name(trace: Trace, model: "LoadedModel | None") -> str:
    return str(trace.made_by.get("checkpoint")) if model is None else model.name


def _known() -> dict[str, str]:
    return st.session_state.setdefault("aligners", {})
