"""Lists of texts, each a link that opens Explore with the text, the model and a head in focus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from transformer_viz.addresses import HeadPlace
from transformer_viz.surveys.block_results import CUT
from transformer_viz.terms import KIND_TITLES
from transformer_viz.text_display import display_text
from transformer_viz.views.cache import model_list
from transformer_viz.views.components import markup, navigation
from transformer_viz.views.state import focus
from transformer_viz.views.survey.shown import Shown

_GO = "survey_go"
TRIAL = "On trial"
"""The tab of Explore that asks whether a head's attention is the cause."""


@dataclass(frozen=True)
class Line:
    """One text of a list.

    Attributes:
        value: what it is listed by, in words.
        text: of the corpus.
        more: what is said behind it, such as what was written.
        has_trial: whether it has a link to *On trial* too.
    """

    value: str
    text: str
    more: str = ""
    has_trial: bool = False


def show(lists: Mapping[str, Sequence[Line]], shown: Shown, key: str) -> None:
    """Lists side by side, by their titles."""
    lines = [line for found in lists.values() for line in found]
    has_model = is_there(shown.survey.model.name)
    places = iter(range(len(lines)))
    sections = {
        title: [_data(line, next(places), shown, has_model=has_model) for line in found] for title, found in lists.items()
    }
    # The texts are of the corpus, and what they open is this page's own: the browser says which line alone.
    markup.show("survey/texts.html", key, lambda at, _: _open(lines, shown, at), sections=sections, large=shown.is_large)


def is_there(name: str) -> bool:
    """Whether a model of this name can be chosen on Explore."""
    entries = {entry.name: entry.error for entry in [*model_list.entries(), *model_list.models().values()]}
    return name in entries and entries[name] is None


def go() -> None:
    """To Explore, where a line was opened; first on the page, since a callback has no page to leave."""
    if st.session_state.pop(_GO, False):
        navigation.go("Explore")


def is_going() -> bool:
    """Whether a line was opened in a fragment, which the whole page has to follow."""
    return _GO in st.session_state


def _data(line: Line, place: int, shown: Shown, *, has_model: bool) -> dict[str, Any]:
    is_cut = len(line.text) >= CUT
    tabs = ("", *((TRIAL,) if line.has_trial else ())) if has_model and not is_cut else ()
    model = shown.survey.model.name
    links = [{"tab": tab, "at": f"{place} {tab}", "href": address(line.text, model, shown.head, tab)} for tab in tabs]
    more = " ".join(
        filter(None, ["Only the beginning of this text is kept, so it cannot be opened." if is_cut else "", line.more])
    )
    return {"value": line.value, "text": display_text(line.text), "more": more, "links": links}


def address(text: str, model: str, head: HeadPlace, tab: str = "") -> str:
    """Explore's link, from this page."""
    place = {"kind": KIND_TITLES[head.kind], "layer": focus.layer_words(head.layer), "head": focus.head_words(head.head)}
    said = {"text": text, "checkpoint": model, **place, **({"explore_tab": "Heads", "heads_part": tab} if tab else {})}
    return f"./?{urlencode(said)}"


def _open(lines: Sequence[Line], shown: Shown, at: Any) -> None:
    """Puts a line into the session as Explore reads it; what is no line of these lists is passed over."""
    place, _, tab = str(at).partition(" ")
    if place not in map(str, range(len(lines))) or not is_there(shown.survey.model.name):
        return
    state, model, head = st.session_state, shown.survey.model.name, shown.head
    state.text, state.checkpoint, state.text_checkpoint = lines[int(place)].text, model, model
    state.kind, state.layer, state.head = head.kind, head.layer, head.head
    state.step = ""
    if tab == TRIAL:
        state.explore_tab, state.heads_part = "Heads", TRIAL
    state[_GO] = True
