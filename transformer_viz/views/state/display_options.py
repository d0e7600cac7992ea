"""Display options of all pages, which need no model: large letters for a projector, whether the answer is hidden, light or
dark; and the glossary of a page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import streamlit as st

from transformer_viz import language
from transformer_viz.language import say
from transformer_viz.sentences.correctness import answer_words
from transformer_viz.trace.trace import Trace
from transformer_viz.views import glossary, names
from transformer_viz.views.components.markdown import said
from transformer_viz.views.state import lesson_place, levels, link, own_text

AUTO = "auto"
"""The device that is best here."""
_HTML = """
<fieldset><legend></legend>
<button value="Light"></button><button value="Dark"></button><button value="System"></button></fieldset>
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
    """The choices in the popover."""

    is_large: bool
    with_answer: bool
    unfolds: bool = False
    """True where nothing of a run is seen before its step has come."""


def current() -> DisplayOptions:
    """Reads the options as they stand."""
    state = st.session_state
    return DisplayOptions(
        is_large=state.projector,
        with_answer=not state.hide_answer,
        unfolds=(link.opened_bare() or own_text.is_there() or lesson_place.unfolds()) and not levels.is_all(),
    )


def is_hidden(what: str) -> bool:
    """Tells whether a page or a tab has to keep to itself what would tell the answer; then a line says so, and how to see it.

    Args:
        what: it shows, in the plural: `These maps`.
    """
    if current().with_answer:
        return False
    words = say("{what} would give the answer away, so they are hidden with it. *Settings* above shows it.", what=say(what))
    st.info(words, icon=":material/visibility_off:")
    return True


def _begin_anew() -> None:
    """Begins anew, with nothing revealed, when somebody hides the answer: they have seen the run to its end."""
    if st.session_state.hide_answer:
        st.session_state.step = ""


def answer_of(trace: Trace) -> str:
    """` (right)`, for behind an output: whether it is, as Markdown; nothing where the answer is hidden."""
    words = answer_words(trace) if current().with_answer else ()
    return say(" ({verdict})", verdict=said(words)) if words else ""


def popover(page: str, device: Callable[[], None] | None = None) -> None:
    """Settings in a row of controls, the words of the page, and the switch of all controls.

    Args:
        page: that has it.
        device: draws the box of the device, on a page that runs a model. Seldom touched, it would cost each page as much to
            mount as any other box.
    """
    # What is told of a button that is pointed at would lie over the first entry of its menu.
    with st.popover(say("Settings"), icon=":material/tune:"):
        link.toggle(say("Projector: large letters, maps only"), key="projector")
        link.toggle(
            say("Hide the answer"),
            key="hide_answer",
            help=say("Nothing tells what the model writes and where it looks, until a step is guessed or revealed"),
            on_change=_begin_anew,
        )
        # One of its buttons loads the page again: the link keeps what was chosen, an opened file is not kept.
        # Explore is the bare address.
        _theme_choice()(key="theme-choice", data={"pages": ["", *names()], "words": _theme_words()})
        if device is not None and (levels.is_all() or st.session_state.device != AUTO):
            device()
    if page != "train":  # has them at its beginning
        glossary_popover(page)
    levels.switch()


def _theme_words() -> list[str]:
    return [say("Light or dark"), say("Light"), say("Dark"), say("As the system")]


@cache
def _theme_choice() -> Any:
    """Light, dark or the system's theme: Streamlit's own setting, whose menu this app hides."""
    script = Path(__file__).with_name("theme_choice.js").read_text(encoding="utf-8")
    return st.components.v2.component("transformer-viz-theme-choice", html=_HTML, css=_CSS, js=script)


def glossary_popover(page: str) -> None:
    """The terms of a page, each explained in a sentence: the basics in sight and the others folded, and a box that looks one up
    among those of all pages; a widget's own is also beside its label."""
    with st.popover(say("Glossary"), icon=":material/dictionary:"):
        _glossary(page)


def _glossary(page: str) -> None:
    looks: Any = {"placeholder": say("Type a word, then press Enter"), "max_chars": 40, "icon": ":material/search:"}
    wanted = st.text_input(say("Look up a term"), key="glossary_wanted", label_visibility="collapsed", **looks)
    # On a phone they are longer than the window, and keys scroll only what can have the focus.
    words = _found(wanted) if wanted.strip() else _of_page(page, language.current())
    st.html(f'<div role="group" aria-label="{escape(say("Glossary"))}" tabindex="0">{words}</div>')


@cache
def _of_page(page: str, _language: str) -> str:
    terms = glossary.of_page(page)
    n_basics = sum(name in glossary.BASICS for name in terms)
    more = escape(say("{n} more terms", n=len(terms) - n_basics))
    basics, others = _list(terms[:n_basics]), _list(terms[n_basics:])
    return f"{basics}<details><summary>{more}</summary>{others}</details>"


def _found(wanted: str) -> str:
    names = glossary.found(wanted)
    return _list(names) if names else f"<p>{escape(say('No term has “{wanted}”.', wanted=wanted))}</p>"


def _list(names: Sequence[str]) -> str:
    words = (
        f"<li>{say('{term}: {sentence}', term=f'<b>{escape(say(name))}</b>', sentence=escape(glossary.sentence(name)))}</li>"
        for name in names
    )
    return f"<ul>{''.join(words)}</ul>"
