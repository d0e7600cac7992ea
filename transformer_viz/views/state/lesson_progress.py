"""The finished steps of each lesson, in a cookie of the browser, which a session can read before its first picture.

Without cookies it lasts as long as the session.
"""

import re

import streamlit as st

COOKIE = "transformer_viz_lessons"
FIRST_QUESTION = "0"
"""The question of the bare address, beside lessons, whose names begin with a letter: step 0 of it is done once it was answered
or put away."""
_STEPS, _IS_NEW = "lessons_done", "lessons_done_is_new"
"""In the session: a number for each lesson, of which each bit is a step; and whether the browser has to be told."""
_LESSON = re.compile(r"(0|[a-z][a-z0-9-]{0,39})\.([0-9a-f]{1,8})", re.ASCII)
_MOST = 60
"""Lessons in a cookie, which may have 4,096 characters."""


def done(lesson: str) -> list[int]:
    """The steps of a lesson that are done, from 0."""
    bits = _steps().get(lesson, 0)
    return [step for step in range(bits.bit_length()) if bits >> step & 1]


def mark(lesson: str, step: int) -> None:
    """A step, from 0, is done."""
    steps = _steps()
    if step not in done(lesson):
        steps[lesson] = steps.get(lesson, 0) | 1 << step
        st.session_state[_IS_NEW] = True


def forget() -> None:
    """No step of any lesson is done; for a callback. The first question does not come back."""
    st.session_state[_STEPS] = {name: bits for name, bits in _steps().items() if name == FIRST_QUESTION}
    st.session_state[_IS_NEW] = True


def cookie() -> str:
    """What the browser is to keep; nothing where it knows all of it."""
    if not st.session_state.get(_IS_NEW):
        return ""
    return f"{COOKIE}={'~'.join(f'{name}.{bits:x}' for name, bits in [*_steps().items()][-_MOST:])}"


def _steps() -> dict[str, int]:
    state = st.session_state
    if _STEPS not in state:
        said = st.context.cookies.get(COOKIE, "")
        found = [*map(_LESSON.fullmatch, said.split("~"))] if isinstance(said, str) else []
        state[_STEPS] = {one[1]: int(one[2], 16) for one in found[:_MOST] if one is not None}
    return state[_STEPS]
