"""The first question, beside the player of a bare address: which token will the model write first?

It is that of the first lesson. Until it is answered, the page is drawn as it is before the first step. Who does anything else,
as Play, a step or another text, has put it away. It is asked once: the browser remembers that.
"""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from transformer_viz.language import say
from transformer_viz.learn.lesson import Ask
from transformer_viz.learn.questions import Question, Spot, question
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.sentences.run_sentences import Sentence, say_sentence
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import viewer
from transformer_viz.views.state import focus, lesson_place
from transformer_viz.views.state.display_options import DisplayOptions
from transformer_viz.vocabulary import unit

_ASKS, _AT, _TOLD = "first_question", "first_question_at", "first_question_told"
"""In the session: that it is to be asked, and then the question; where the page stood, with the newest press that was
heard; and what was said of an answer, with its run."""
_ANSWER, _ON = "answer ", "lesson"
"""The words that the player reports: an option's number stands behind the first."""
_LESSON = "map"


@dataclass(frozen=True)
class Offer:
    """A sentence, and what may be done beside it: words of buttons, by what the player reports of them."""

    sentence: Sentence
    ways: dict[str, str]


def begin() -> None:
    """At a bare address."""
    if not lesson_place.done(lesson_place.FIRST_QUESTION):
        st.session_state[_ASKS] = None


def asked(trace: Trace, model: LoadedModel, chosen: DisplayOptions) -> Offer | None:
    """The question, as long as nothing else has been done on the page."""
    state = st.session_state
    if _ASKS not in state:
        return None
    at = focus.current()
    # Who has gone on and back again stands where the page stood, and has done something all the same.
    place = (at, focus.pinned(), viewer.newest_heard())
    is_as_it_was = state.setdefault(_AT, place) == place
    if not is_as_it_was or not chosen.unfolds or not chosen.with_answer or model.task is None or not trace.writes:
        _end()
        return None
    made = state[_ASKS] = question(
        trace, Ask(kind="writes"), Spot(at.kind, at.layer, at.head, at.step), lesson_place.language()
    )
    if not isinstance(made, Question):
        _end()
        return None
    noun = say(unit(trace.source_tokens))
    about = say("this model {does}. Which {unit} will it write first?", does=say(model.task.about), unit=noun)
    ways = {f"{_ANSWER}{number}": option for number, option in enumerate(made.options)}
    return Offer((("strong", say("Before you look: ")), ("plain", about)), ways)


def is_open() -> bool:
    """Tells whether it waits for an answer."""
    return _ASKS in st.session_state


def choose(way: Any) -> None:
    """Takes what the player reports of a button; for a callback. Nonsense is passed over."""
    state = st.session_state
    if way == _ON and (place := lesson_place.read_place(f"{_LESSON}.2")) is not None:
        state.pop(_TOLD, None)
        lesson_place.open_step(place)
    if not isinstance(asks := state.get(_ASKS), Question):
        return
    ways = [f"{_ANSWER}{number}" for number in range(len(asks.options))]
    if way in ways:
        number = ways.index(way)
        state[_TOLD] = (state.run, asks.is_right([number]), asks.options[number])
        lesson_place.mark(_LESSON, 0)
        _end()


def told(run: str) -> Offer | None:
    """Says what became of the answer, before the sentence of the step that it was about; and the way on."""
    of, is_right, option = st.session_state.get(_TOLD, (None, False, ""))
    # Who is in a lesson is on the way already.
    if of != run or lesson_place.current() is not None:
        return None
    wrong = ("strong", say("Not so: ")), *say_sentence("you said {option}. ", option=("code", option))
    return Offer((("strong", say("Right. ")),) if is_right else wrong, {_ON: say("go on with lesson 1")})


def put_away() -> None:
    """Asks it no more; for a callback."""
    if is_open():
        _end()


def _end() -> None:
    st.session_state.pop(_ASKS)
    lesson_place.mark(lesson_place.FIRST_QUESTION, 0)
