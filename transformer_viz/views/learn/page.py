"""The page Learn: the lessons as a path, by their levels, each with a small picture and one's progress."""

import base64
from html import escape
from pathlib import Path
from typing import Any

import streamlit as st

from transformer_viz.language import later, say
from transformer_viz.learn.lesson import LESSONS, LEVELS, Lesson
from transformer_viz.learn.words import Words, languages, words
from transformer_viz.views.components import style
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.learn.thumbnails import thumbnail
from transformer_viz.views.state import lesson_place, link, visit_language
from transformer_viz.views.state.lesson_place import Place

TITLE, ICON, ORDER = later("Learn"), ":material/school:", 7
_CSS = Path(__file__).with_name("path.css").read_text(encoding="utf-8")


def show() -> None:
    """Draws the page."""
    st.html(f"<style>{_CSS}</style>")
    st.markdown(
        say("What is attention? Each lesson asks you to predict, then to look. It leads through the pages of this app.")
    )
    names = visit_language.NAMES
    looks: Any = {"words": lambda name: names.get(name, name), "said": lambda name: names.get(name, name)}
    default, quiet = lesson_place.language(), "collapsed"
    label = say("Language")
    language = link.segmented_control(
        label, languages(), key="lesson_language", default=default, label_visibility=quiet, **looks
    )
    of_lessons = words(language)
    lessons, faults = lesson_place.lessons(language)
    for fault in faults:
        st.warning(literal(fault), icon=":material/error:")
    places = [_where_to_go_on(language, lesson) for lesson in lessons]
    begun = [bool(lesson_place.done(lesson.name)) for lesson in lessons]
    # Where one goes on: the first lesson that is not done.
    here = next((place for place in places if len(_done(place.lesson)) < len(place.lesson.steps)), None)
    pictures = []
    for title, numbered in _by_level(lessons, of_lessons).items():
        if not numbered:
            continue
        st.html(f'<h2 class="level">{escape(title)}</h2>')
        with st.container(horizontal=True, key=f"level-{len(pictures)}"):
            pictures += [_draw(number, places[number], of_lessons, is_here=places[number] is here) for number in numbered]
    if any(begun):
        with st.container(horizontal=True, vertical_alignment="center", key="lessons-kept"):
            about = say(
                "A card is done once you answered its question or did what it asks. A cookie of this browser remembers it."
            )
            st.caption(about, width="content")
            st.button(say("Forget"), "forget-lessons", on_click=lesson_place.forget, type="tertiary")
    # Last of all, since the first visitor waits for their runs.
    for room, lesson in pictures:
        drawn = base64.b64encode(thumbnail(lesson, style.theme()).encode()).decode("ascii")
        room.html(f'<img class="lesson-picture" alt="" src="data:image/svg+xml;base64,{drawn}">' if drawn else "<i></i>")


def _by_level(found: list[Lesson], of_lessons: Words) -> dict[str, list[int]]:
    """The lessons' places, in the order of levels; a teacher's own come last, whatever their level is."""
    shipped = [place for place, lesson in enumerate(found) if lesson.file.is_relative_to(LESSONS)]
    levels = {of_lessons(f"card.level.{level}"): [at for at in shipped if found[at].level == level] for level in LEVELS}
    return {**levels, of_lessons("card.own"): [place for place in range(len(found)) if place not in shipped]}


def _done(lesson: Lesson) -> list[int]:
    return [step for step in lesson_place.done(lesson.name) if step < len(lesson.steps)]


def _where_to_go_on(language: str, lesson: Lesson) -> Place:
    """The first step that is not done, or after the last one the beginning."""
    done = _done(lesson)
    return Place(language, lesson, next((step for step in range(len(lesson.steps)) if step not in done), 0))


def _draw(number: int, place: Place, of_lessons: Words, *, is_here: bool) -> tuple[Any, Lesson]:
    """Draws one lesson. Gives the room for its picture."""
    lesson, n, done = place.lesson, len(place.lesson.steps), _done(place.lesson)
    with st.container(border=True, gap="xsmall", key=f"lesson-{lesson.name}"):
        room = st.empty()
        room.html('<i class="lesson-picture"></i>')
        about = of_lessons("card.about", minutes=lesson.minutes, n=n)
        st.markdown(f"**{number + 1} · {literal(lesson.title)}**  \n{literal(about)}")
        dots = "".join(f'<i class="{"done" if step in done else ""}"></i>' for step in range(n))
        said = f"{of_lessons('card.done')}: {len(done)} / {n}"
        st.html(f'<p class="lesson-dots" role="img" aria-label="{escape(said)}" title="{escape(said)}">{dots}</p>')
        words = "again" if len(done) == n else "begin"
        begin = of_lessons("card.go-on", n=place.number + 1) if place.number else of_lessons(f"card.{words}")
        looks: Any = {"type": "primary" if is_here else "secondary", "icon": ":material/play_arrow:"}
        help_ = f"{begin}: {literal(lesson.title)}"
        st.button(begin, f"open-{lesson.name}", help_, lesson_place.open_step, args=(place,), **looks)
    return room, lesson
