"""Two texts below the first question, each with its crossing as a picture: what may be looked at instead.

The pictures are words and which of them belong together, as a run of the model has them; a test runs it.
"""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from transformer_viz.language import later, say
from transformer_viz.views.cache import model_list
from transformer_viz.views.state import focus, own_text

_WAY = "idea "


@dataclass(frozen=True)
class Idea:
    """A text for a model.

    Attributes:
        model: one of those that come along.
        text: what it reads.
        title: what it does.
        read: the tokens of the text.
        written: those that the model writes.
        links: for each that is written, the place of the one that it comes from.
        head: layer and head of cross-attention that look there, from 0; the run opens with it.
    """

    model: str
    text: str
    title: str
    read: tuple[str, ...]
    written: tuple[str, ...]
    links: tuple[int, ...]
    head: tuple[int, int]

    def to_browser(self) -> dict[str, Any]:
        """The fields that `ideas.js` draws."""
        return {"title": say(self.title), "read": self.read, "written": self.written, "links": self.links}


IDEAS = (
    Idea(
        "german",
        "ich weiß, dass die alte Frau gestern das Buch gelesen hat",
        later("German → English"),
        ("ich", "weiß", ",", "dass", "die", "alte", "Frau", "gestern", "das", "Buch", "gelesen", "hat"),
        ("I", "know", "that", "the", "old", "woman", "read", "the", "book", "yesterday"),
        (0, 1, 3, 4, 5, 6, 10, 8, 9, 7),
        (1, 3),
    ),
    Idea(
        "numbers",
        "siebenhundertdreiundzwanzig",
        later("number words → figures"),
        ("sieben", "hundert", "drei", "und", "zwanzig"),
        ("7", "2", "3"),
        (0, 4, 2),
        (1, 0),
    ),
)


def offered() -> list[dict[str, Any]]:
    """The ideas whose model is there, as the browser draws them."""
    return [{"way": f"{_WAY}{idea.model}", **idea.to_browser()} for idea in _possible()]


def choose(way: str) -> bool:
    """Shows the idea whose button was pressed; False where the button was no idea's. For a callback."""
    idea = next((idea for idea in _possible() if way == f"{_WAY}{idea.model}"), None)
    if idea is None:
        return False
    state = st.session_state
    state.checkpoint = state.text_checkpoint = idea.model
    state.text = idea.text
    focus.go_to_head("cross", *idea.head)
    own_text.chosen()
    return True


def _possible() -> list[Idea]:
    names = {entry.name for entry in model_list.entries() if entry.error is None}
    return [idea for idea in IDEAS if idea.model in names]
