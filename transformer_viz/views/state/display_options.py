"""Display options of all pages, which need no model: large letters for a projector, whether the answer is hidden, light or
dark; and the glossary of a page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import streamlit as st

from transformer_viz.sentences.correctness import answer_words
from transformer_viz.trace.trace import Trace
from transformer_viz.views import glossary, names
from transformer_viz.views.components.markdown import said
from transformer_viz.views.state import levels, link, own_text

AUTO = "auto"
"""The device that is best here."""
_HTML = """
<fieldset><legend>Light or dark</legend>
<button value="Light">Light</button><button value="Dark">Dark</button><button value="System">As the system</button></fieldset>
"""
_CSS = """
fieldset { border: 0; margin: 0; padding: 0; display: flex; }
legend { padding: 0 0 0.3rem; font: 0.875rem var(--st-font); color: var(--st-text-color); }
button {
  font: 0.875rem var(--st-font); color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); padding: 0.35rem 0.7rem; min-height: 2.2rem; cursor: pointer;
}
button[aria-pressed="true"] { color: var(--st-primary-color); border-color: var(--st-primary-color); }
button:focus-visible { outline: 3px solid var(--st-primary-color); outline-offset: 1px; }
"""


@dataclass(frozen=True, kw_only=True)
class DisplayOptions:
    """What was chosen in the popover."""

    is_large: bool
    with_answer: bool
    unfolds: bool = False
    """Whether nothing of a run is seen before its step has come."""


def current() -> DisplayOptions:
    """As they stand."""
    state = st.session_state
    return DisplayOptions(
        is_large=state.projector,
        with_answer=not state.hide_answer,
        unfolds=(link.opened_bare() or own_text.is_there()) and not levels.is_all(),
    )


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


def popover(page: str, device: Callable[[], None] | None = None) -> None:
    """Settings in a row of controls, the words of the page, and the switch of all controls.

    Args:
        page: that has it.
        device: draws the box of the device, on a page that runs a model. Seldom touched, it would cost each page as much to
            mount as any other box.
    """
    words = "Projector, hide the answer, light or dark" + ("" if device is None else ", device")
    with st.popover("Settings", icon=":material/tune:", help=words):
        link.toggle("Projector: large letters, maps only", key="projector")
        link.toggle(
            "Hide the answer",
            key="hide_answer",
            help="Nothing tells what the model writes and where it looks, until a step is guessed or revealed",
            on_change=_begin_anew,
        )
        # One of its buttons loads the page again: the link keeps what was chosen, an opened file is not kept.
        # Explore is the bare address.
        _theme_choice()(key="theme-choice", data={"pages": ["", *names()]})
        if device is not None and (levels.is_all() or st.session_state.device != AUTO):
            device()
    if page != "train":  # has them at its beginning
        glossary_popover(page)
    levels.switch()


@cache
def _theme_choice() -> Any:
    """Light, dark or the system's theme: Streamlit's own setting, whose menu this app hides."""
    script = Path(__file__).with_name("theme_choice.js").read_text(encoding="utf-8")
    return st.components.v2.component("transformer-viz-theme-choice", html=_HTML, css=_CSS, js=script)


def glossary_popover(page: str) -> None:
    """The terms of a page, each explained in a sentence: the basics in sight and the others folded, and a box that looks one up
    among those of all pages; a widget's own is also beside its label."""
    with st.popover("Glossary", icon=":material/dictionary:"):
        _glossary(page)


def _glossary(page: str) -> None:
    looks: Any = {"placeholder": "Type a word, then press Enter", "max_chars": 40, "icon": ":material/search:"}
    wanted = st.text_input("Look up a term", key="glossary_wanted", label_visibility="collapsed", **looks)
    # On a phone they are longer than the window, and keys scroll only what can have the focus.
    words = _found(wanted) if wanted.strip() else _of_page(page)
    st.html(f'<div role="group" aria-label="Glossary" tabindex="0">{words}</div>')


@cache
def _of_page(page: str) -> str:
    terms = glossary.of_page(page)
    n_basics = sum(name in glossary.BASICS for name in terms)
    basics, others = _list(terms[:n_basics]), _list(terms[n_basics:])
    return f"{basics}<details><summary>{len(terms) - n_basics} more terms</summary>{others}</details>"


def _found(wanted: str) -> str:
    names = glossary.found(wanted)
    return _list(names) if names else f"<p>No term has “{escape(wanted)}”.</p>"


def _list(names: Sequence[str]) -> str:
    words = (f"<li><b>{escape(name)}</b>: {escape(glossary.sentence(name))}</li>" for name in names)
    return f"<ul>{''.join(words)}</ul>"
