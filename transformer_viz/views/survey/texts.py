"""Lists of texts, each a link that opens Explore with the text, the model and a head in focus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from transformer_viz.addresses import HeadAddress
from transformer_viz.language import later, say
from transformer_viz.surveys.result import CUT
from transformer_viz.text_display import display_text
from transformer_viz.views.cache import model_list
from transformer_viz.views.components import markup
from transformer_viz.views.state import focus, link, visit_language
from transformer_viz.views.survey.shown import Shown

_GO = "survey_go"
TRIAL = later("On trial")
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
    """Draws lists side by side, by their titles."""
    model, has_model = shown.survey.model.name, is_there(shown.survey.model.name)
    lines: list[Line] = []
    sections: dict[str, list[dict[str, Any]]] = {}
    for title, found in lists.items():
        sections[title] = []
        for line in found:
            is_cut, links = len(line.text) >= CUT, []
            if has_model and not is_cut:
                for tab in ("", *((TRIAL,) if line.has_trial else ())):
                    href = address(line.text, model, shown.head, tab)
                    links.append({"tab": say(tab) if tab else "", "at": f"{len(lines)} {tab}", "href": href})
            cut = say("Only the beginning of this text is kept, so it cannot be opened.") if is_cut else ""
            more = " ".join(filter(None, [cut, line.more]))
            sections[title].append({"value": line.value, "text": display_text(line.text), "more": more, "links": links})
            lines.append(line)
    # The texts are of the corpus, and what they open is this page's own: the browser says which line alone.
    markup.show("survey/texts.html", key, lambda at: _open(lines, shown, at), sections=sections, large=shown.is_large)


def is_there(name: str) -> bool:
    """Tells whether a model of this name can be chosen on Explore."""
    entries = {entry.name: entry.error for entry in [*model_list.entries(), *model_list.models().values()]}
    return name in entries and entries[name] is None


def go() -> None:
    """Goes to Explore where a line was opened. Call it first on the page, since a callback cannot leave a page."""
    if st.session_state.pop(_GO, False):
        link.go_to("Explore")


def address(text: str, model: str, head: HeadAddress, tab: str = "") -> str:
    """The address of Explore with a text, a model and a head in focus; `tab` is a part of the tab Heads that is open."""
    place = focus.in_link(head.kind, head.layer, head.head)
    said = {
        "text": text,
        "checkpoint": model,
        **place,
        **visit_language.in_address(),
        **({"explore_tab": "Heads", "heads_part": tab} if tab else {}),
    }
    return f"./?{urlencode(said)}"


def _open(lines: Sequence[Line], shown: Shown, at: Any) -> None:
    """Puts a line into the session as Explore reads it; what is no line of these lists is passed over."""
    place, _, tab = str(at).partition(" ")
    model, head = shown.survey.model.name, shown.head
    if place not in map(str, range(len(lines))) or not is_there(model):
        return
    st.session_state.update(text=lines[int(place)].text, checkpoint=model, text_checkpoint=model, step="")
    focus.go_to_head(head.kind, head.layer, head.head)
    if tab == TRIAL:
        st.session_state.update(explore_tab="Heads", heads_part=TRIAL)
    st.session_state[_GO] = True
