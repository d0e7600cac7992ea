"""The page Learn: the list of lessons, each of which leads through the other pages, with one's progress."""

from typing import Any

import streamlit as st

from transformer_viz.learn.words import languages, words
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.state import lesson_place, link
from transformer_viz.views.state.lesson_place import Place

TITLE, ICON, ORDER = "Learn", ":material/school:", 7
_LANGUAGES = {"en": "English", "zh": "中文"}


def show() -> None:
    """Draws the page."""
    st.markdown("What is attention? Each lesson asks you to predict, then to look. It leads through the pages of this app.")
    looks: Any = {"words": lambda name: _LANGUAGES.get(name, name), "label_visibility": "collapsed"}
    language = link.segmented_control("Language", languages(), key="lesson_language", **looks)
    say = words(language)
    found, faults = lesson_place.lessons(language)
    for fault in faults:
        st.warning(literal(fault), icon=":material/error:")
    is_begun = False
    for number, lesson in enumerate(found, 1):
        n = len(lesson.steps)
        done = [step for step in lesson_place.done(lesson.name) if step < n]
        # Where one goes on: the first step that is not done, or after the last one the beginning.
        place = Place(language, lesson, next((step for step in range(n) if step not in done), 0))
        is_begun |= bool(done)
        with st.container(border=True, horizontal=True, wrap=False, vertical_alignment="center", key=f"lesson-{lesson.name}"):
            about = say("card.about", minutes=lesson.minutes, n=n, level=say(f"card.level.{lesson.level}"))
            progress = f"  \n**✓ {literal(say('card.done'))}: {len(done)} / {n}**" if done else ""
            st.markdown(f"**{number} · {literal(lesson.title)}**  \n{literal(about)}{progress}", width="stretch")
            begin = say("card.step", n=place.number + 1, m=n) if place.number else say("card.begin")
            key, help_ = f"open-{lesson.name}", f"{begin}: {literal(lesson.title)}"
            st.button(begin, key, help_, lesson_place.open_step, args=(place,), icon=":material/play_arrow:")
    if is_begun:
        with st.container(horizontal=True, vertical_alignment="center", key="lessons-kept"):
            about = "A card is done once you answered its question or did what it asks. A cookie of this browser remembers it."
            st.caption(about, width="content")
            st.button("Forget", "forget-lessons", on_click=lesson_place.forget, type="tertiary")
