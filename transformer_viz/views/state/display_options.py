"""How every page looks: letters for a projector, whether the right answer is shown; and the link. Needs no model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import streamlit as st

from transformer_viz import glossary
from transformer_viz.analysis.answer import answer_words
from transformer_viz.figures.shades import SCALES, Scale
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import copy_link, word_list
from transformer_viz.views.components.markdown import said
from transformer_viz.views.state import link


@dataclass(frozen=True, kw_only=True)
class DisplayOptions:
    """What was chosen in the popover."""

    is_large: bool
    with_answer: bool
    scale: Scale = "fixed"
    """What has the strongest colour in the maps of weights."""


def current() -> DisplayOptions:
    """As they stand."""
    state = st.session_state
    return DisplayOptions(is_large=state.projector, with_answer=not state.hide_answer, scale=scale())


def scale() -> Scale:
    """What has the strongest colour; on a page that does not offer it, a weight of 1."""
    state = st.session_state
    return state.colours if "colours" in state.link_started else "fixed"


def is_hidden(what: str) -> bool:
    """Whether a page or a tab has to keep to itself what would tell the answer; a line says so then, and how to see it.

    Args:
        what: it shows, in the plural: `These maps`.
    """
    if current().with_answer:
        return False
    words = f"{what} would tell what the model writes, and are hidden while the answer is hidden. *View* above shows it."
    st.info(words, icon=":material/visibility_off:")
    return True


def _begin_anew() -> None:
    """Whoever hides the answer of a run has seen it to the end: it begins with nothing revealed."""
    if st.session_state.hide_answer:
        st.session_state.step = 0


def answer_of(trace: Trace) -> str:
    """` (right)`, for behind an output: whether it is, as Markdown; nothing where the answer is hidden."""
    words = answer_words(trace) if current().with_answer else ()
    return f" ({said(words)})" if words else ""


def popover(texts: Mapping[str, str] | None = None, device: Callable[[], None] | None = None) -> None:
    """The two switches and the button that copies the link, in a row of controls.

    Args:
        texts: of the page, that may be too long for a link, by what they are called.
        device: draws the box of the device, on a page that runs a model. Seldom touched, it would cost each page as much to
            mount as any other box.
    """
    words = (
        "Projector, hide the answer, copy the link" if device is None else "Projector, hide the answer, device, copy the link"
    )
    with st.popover("View", icon=":material/visibility:", help=words):
        st.toggle("Projector: large letters, maps only", key="projector")
        st.toggle(
            "Hide the answer",
            key="hide_answer",
            help="Nothing tells what the model writes and where it looks, until a step is guessed or revealed",
            on_change=_begin_anew,
        )
        if "colours" in st.session_state.link_started:
            st.segmented_control(
                "Colours of the maps",
                list(SCALES),
                key="colours",
                format_func=SCALES.__getitem__,
                required=True,
                help=glossary.sentence("Colours of the maps"),
            )
        if device is not None:
            device()
        copy_link.show(link.too_long(texts or {}))
    word_list.popover(st.session_state.link_page)
