"""Display options of all pages: large letters for a projector, and whether the answer is hidden. Needs no model."""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from transformer_viz.analysis.correctness import answer_words
from transformer_viz.figures.colour_scale import SCALES, Scale
from transformer_viz.trace.trace import Trace
from transformer_viz.views import glossary
from transformer_viz.views.components import theme_choice, word_list
from transformer_viz.views.components.markdown import said
from transformer_viz.views.state import levels, link

AUTO = "auto"
"""The device that is best here."""


@dataclass(frozen=True, kw_only=True)
class DisplayOptions:
    """What was chosen in the popover."""

    is_large: bool
    with_answer: bool
    unfolds: bool = False
    """Whether nothing of a run is seen before its step has come."""
    scale: Scale = "fixed"
    """What has the strongest colour in the maps of weights."""


def current() -> DisplayOptions:
    """As they stand."""
    state = st.session_state
    return DisplayOptions(
        is_large=state.projector,
        with_answer=not state.hide_answer,
        unfolds=link.opened_bare() and not levels.is_all(),
        scale=scale(),
    )


def scale() -> Scale:
    """What has the strongest colour; on a page that does not offer it, a weight of 1."""
    state = st.session_state
    return state.colours if state.get("has_colours") else "fixed"


def is_hidden(what: str) -> bool:
    """Whether a page or a tab has to keep to itself what would tell the answer; a line says so then, and how to see it.

    Args:
        what: it shows, in the plural: `These maps`.
    """
    if current().with_answer:
        return False
    words = f"{what} would give the answer away, so they are hidden with it. *Settings* above shows it."
    st.info(words, icon=":material/visibility_off:")
    return True


def _begin_anew() -> None:
    """Whoever hides the answer of a run has seen it to the end: it begins with nothing revealed."""
    if st.session_state.hide_answer:
        st.session_state.step = ""


def answer_of(trace: Trace) -> str:
    """` (right)`, for behind an output: whether it is, as Markdown; nothing where the answer is hidden."""
    words = answer_words(trace) if current().with_answer else ()
    return f" ({said(words)})" if words else ""


def popover(page: str, device: Callable[[], None] | None = None, *, with_colours: bool = False) -> None:
    """Settings in a row of controls, the words of the page, and the switch of all controls.

    Args:
        page: that has it.
        device: draws the box of the device, on a page that runs a model. Seldom touched, it would cost each page as much to
            mount as any other box.
        with_colours: whether maps of weights may be coloured otherwise.
    """
    state = st.session_state
    state.has_colours = with_colours
    words = "Projector, hide the answer, light or dark" + ("" if device is None else ", device")
    with st.popover("Settings", icon=":material/tune:", help=words):
        link.toggle("Projector: large letters, maps only", key="projector")
        link.toggle(
            "Hide the answer",
            key="hide_answer",
            help="Nothing tells what the model writes and where it looks, until a step is guessed or revealed",
            on_change=_begin_anew,
        )
        if with_colours:
            with levels.only_in_all("colours", is_used=link.option("colours", SCALES) != next(iter(SCALES))):
                help_ = glossary.sentence("Colours of the maps")
                link.segmented_control("Colours of the maps", key="colours", help=help_)
        theme_choice.buttons()
        if device is not None:
            with levels.only_in_all("device", is_used=state.device != AUTO):
                device()
    if page != "train":  # has them at its beginning
        word_list.popover(page)
    levels.switch()
