"""The browser's messages to every page: whether its window is narrow, the cookie of lessons, the language, and clicks on a
lesson's term."""

from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from transformer_viz.learn.points import POINTS
from transformer_viz.views.state import lesson_place, visit_language

_KEY = "screen"


def is_narrow() -> bool:
    """Tells whether the browser said that its window is narrow: a phone's, or one at 200 % zoom."""
    return bool((st.session_state.get(_KEY) or {}).get("narrow"))


def watch() -> None:
    """Asks it, once on every page, and draws nothing. It also keeps how far somebody is in the lessons, shows what a
    step of one points at, has the keyboard on its card, and hears of a term that leads to one."""
    place = lesson_place.read_place(st.session_state.get(lesson_place.KEY, ""))
    # Where what the open step points at stands, with the step's own name.
    point = None if place is None else POINTS.get(place.step.point)
    pointed = None if place is None or point is None else {"step": place.word, "selector": point.selector}
    about = {"narrow": is_narrow(), "cookie": lesson_place.cookie(), "point": pointed}
    # What the keyboard stands on.
    waits = bool(st.session_state.get(lesson_place.WAITS))
    about["card"] = None if place is None else {"step": place.word, "waits": waits}
    about["language"] = visit_language.current()
    about["leaving"] = lesson_place.TO in st.session_state
    hears: dict[str, Any] = {"on_narrow_change": lambda: None, "on_lesson_change": _open_lesson}
    _component()(key=_KEY, data=about, default={"narrow": False}, height=1, **hears)
    _draw_anew_after_a_break()


# A browser counts no further than 24 days.
@st.fragment(run_every=timedelta(days=1))
def _draw_anew_after_a_break() -> None:
    """Does nothing; its being there is enough: only pages with a fragment that runs by itself does Streamlit draw anew when
    their browser is connected again, to this server or another. To a new one the next click would be that of a new visitor, and
    is lost."""


def _open_lesson() -> None:
    word, here = st.session_state[_KEY].get("lesson"), lesson_place.read_place(st.session_state.get(lesson_place.KEY, ""))
    if isinstance(word, str) and (place := lesson_place.read_place(word)) is not None:
        # Who learns in Chinese goes on in Chinese.
        same = None if here is None else lesson_place.read_place(f"{here.language}.{word}")
        lesson_place.open_step(same or place)


def columns(shares: int | Sequence[float], name: str) -> Sequence[Any]:
    """Columns, on a narrow page below each other: by a rule of style, so that they are the same columns in both, and what is
    in them stays there when the browser says how wide it is.

    Args:
        shares: as of `st.columns`.
        name: tells them from others of the page.
    """
    with st.container(key=f"stacked-{name}"):
        return st.columns(shares, gap="medium")


@cache
def _component() -> Any:
    script = Path(__file__).with_name("screen.js").read_text(encoding="utf-8")
    return st.components.v2.component("transformer-viz-screen", js=script)
