"""The question on a lesson's card: its form, and the feedback to an answer."""

from dataclasses import replace
from html import escape
from typing import Any

import streamlit as st

from transformer_viz.learn.questions import Question
from transformer_viz.learn.words import Words
from transformer_viz.numbers_in_words import number_words
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.state import lesson_place
from transformer_viz.views.state.lesson_place import Answer

_MOST_BELOW = 5
"""Options that stand below each other; the keys of a long row stand side by side."""


def draw_form(asked: Question, unanswered: Answer, row: int | None, say: Words) -> None:
    """Options or a box for a number, and the button.

    Args:
        asked: the question.
        unanswered: what the answer is of, without its words.
        row: where Explore goes once it is answered; None stays where it is.
        say: the words of the lesson's language.
    """
    key = f"lesson-answer-{st.session_state[lesson_place.KEY]}-{unanswered}"
    looks: Any = {"label_visibility": "collapsed"}
    with st.form(key=f"{key}-form", border=False):
        if asked.number is not None:
            st.number_input(literal(asked.text), value=None, format="%0.3f", step=0.01, key=key, **looks)
        elif asked.is_several:
            with st.container(horizontal=len(asked.options) > _MOST_BELOW):
                for number, option in enumerate(asked.options):
                    st.checkbox(literal(option), key=f"{key}-{number}", width="content")
        else:
            labels, options = [*map(literal, asked.options)], range(len(asked.options))
            looks |= {"horizontal": len(options) > _MOST_BELOW}
            st.radio(literal(asked.text), options, None, labels.__getitem__, key=key, **looks)
        arguments = (key, unanswered, row, len(asked.options) if asked.is_several else None)
        st.form_submit_button(say("card.answer"), type="primary", on_click=_answer, args=arguments)


def _answer(key: str, unanswered: Answer, row: int | None, n_options: int | None) -> None:
    state = st.session_state
    if n_options is None:
        given = state.get(key)
        words = None if given is None else f"{given:.6g}" if isinstance(given, float) else str(given)
    else:
        words = "+".join(str(number) for number in range(n_options) if state.get(f"{key}-{number}")) or None
    if words is not None:
        lesson_place.set_answer(str(replace(unanswered, words=words)), row)


def draw_judged(asked: Question, given: list[int] | float | None, say: Words) -> None:
    """Whether it was right, what was said, what is right, and why; of nothing where the question was skipped."""
    is_right = given is not None and asked.is_right(given)
    sentences = [] if given is None else [say("card.said", said=_said(asked, given, say))]
    if not is_right:
        right = sorted(asked.right) if asked.number is None else asked.number
        sentences.append(say("card.is-right", right=_said(asked, right, say)))
    judged = say("card.skipped" if given is None else "card.right" if is_right else "card.wrong")
    blank = say("common.blank")  # Chinese has none between sentences
    words = with_code(blank.join([*sentences, asked.why]))
    st.html(f'<p class="lesson-say" role="status"><b>{escape(judged)}</b>{blank}{words}</p>')


def read_words(asked: Question, words: str) -> list[int] | float | None:
    """What an answer says; None where it is none to this question, as a link may have it."""
    try:
        if asked.number is not None:
            return float(words)
        numbers = [int(part) for part in words.split("+")]
    except ValueError:
        return None
    return numbers if all(0 <= number < len(asked.options) for number in numbers) else None


def with_code(sentence: str) -> str:
    """As HTML: what stands in backquotes is code; all else is text."""
    parts = sentence.split("`")
    return "".join(f"<code>{escape(part)}</code>" if place % 2 else escape(part) for place, part in enumerate(parts))


def _said(asked: Question, answer: list[int] | float, say: Words) -> str:
    if isinstance(answer, int | float):
        return number_words(answer, 3 if abs(answer) < 0.1 else 2)
    # Some options are sentences.
    return say.list([f"`{asked.options[number].rstrip('.。')}`" for number in answer])
