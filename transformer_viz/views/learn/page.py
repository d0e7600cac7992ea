"""Learn: the lessons, each of which leads through the other pages."""

import streamlit as st

from transformer_viz.learn.words import languages, words
from transformer_viz.views.components import lesson_card
from transformer_viz.views.components.lesson_card import Place
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.state import link

TITLE, ICON, ORDER = "Learn", ":material/school:", 7
_LANGUAGES = {"en": "English", "zh": "中文"}


def show() -> None:
    """The page."""
    st.markdown("What is attention? Each lesson asks you to predict, then to look. It leads through the pages of this app.")
    looks: dict[str, object] = {"words": lambda name: _LANGUAGES.get(name, name), "label_visibility": "collapsed"}
    language = link.segmented_control("Language", languages(), key="lesson_language", **looks)  # type: ignore[arg-type]
    say = words(language)
    found, faults = lesson_card.lessons(language)
    for fault in faults:
        st.warning(literal(fault), icon=":material/error:")
    for number, lesson in enumerate(found, 1):
        with st.container(border=True, horizontal=True, vertical_alignment="center", key=f"lesson-{lesson.name}"):
            about = say("card.about", minutes=lesson.minutes, n=len(lesson.steps), level=say(f"card.level.{lesson.level}"))
            st.markdown(f"**{number} · {literal(lesson.title)}**  \n{literal(about)}", width="stretch")
            place = Place(language, lesson, 0)
            key, help_ = f"open-{lesson.name}", f"{say('card.begin')}: {literal(lesson.title)}"
            st.button(say("card.begin"), key, help_, lesson_card.open_step, args=(place,), icon=":material/play_arrow:")
