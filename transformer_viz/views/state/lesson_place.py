"""The place in a lesson (step, answer, open hints), which the link holds, read and changed.

`lesson=map.3` is the step, in the page's language where the lesson is there in it, and `lesson=zh.map.3` in one that is
named; `lesson_answer` what was answered there; and `lesson_card` what the card shows: `d2f` where what was to be done is done,
two hints are open, and the card is folded. `lesson=map.3` alone goes to where the step begins. The finished steps of each
lesson are in a cookie of the browser, which a session can read before its first picture; without cookies they last as long as
the session.
"""

import re
from dataclasses import dataclass, replace
from functools import cache

import streamlit as st

from transformer_viz import app_folders
from transformer_viz.language import ENGLISH, say
from transformer_viz.learn.lesson import LESSONS, Lesson, Step, read_lessons
from transformer_viz.learn.links import Link, names_of_page
from transformer_viz.learn.questions import COVERS, Spot
from transformer_viz.learn.words import languages
from transformer_viz.terms import COMBINED, KINDS
from transformer_viz.views.state import link, visit_language

KEY, ANSWER, _CARD = "lesson", "lesson_answer", "lesson_card"
ASKS, _FLAGS = "lesson_asks", "lesson_flags"
"""In the session: what an answer that is given in the picture is of, with the row to go to; and what is flagged there."""
_WAY = re.compile(r"lesson (flag|look) (\d{0,3}(?:\+\d{1,3}){0,63})", re.ASCII)
SKIPPED = "skip"
TO, BEFORE, WAITS, AWAITS = (f"lesson_{name}" for name in ("to", "before", "waits", "awaits"))
"""In the session: the page to go to first, its link when the step began, whether the question waits for an answer, and whether
the step waits for something to be done: then what the player reports is of the whole page."""
_PLACE = "lesson_place"
"""In the session: the step of the last run."""
_PERSONAL = ("all_controls", "device", "projector", "where")
"""A step leaves these as they are, unless its link names them."""
_ANSWERED = re.compile(
    r"(?P<kind>encoder|decoder|cross)-(?P<layer>\d{1,3})-(?P<head>\d{1,3}|mean|max)-(?P<row>\d{1,4})-(?P<run>[0-9a-f]{8})-"
    r"(?P<words>[0-9eE+.-]{1,80})",
    re.ASCII,
)
_SHOWN = re.compile(r"(d?)([1-3]?)([fo]?)")
COOKIE = "transformer_viz_lessons"
FIRST_QUESTION = "0"
"""The question of the bare address, beside lessons, whose names begin with a letter: step 0 of it is done once it was answered
or put away."""
_STEPS, _IS_NEW = "lessons_done", "lessons_done_is_new"
"""In the session: a number for each lesson, of which each bit is a step; and whether the browser has to be told."""
_LESSON = re.compile(r"(0|[a-z][a-z0-9-]{0,39})\.([0-9a-f]{1,8})", re.ASCII)
_MOST = 60
"""Lessons in a cookie, which may have 4,096 characters."""


@dataclass(frozen=True)
class Place:
    """A step of a lesson, numbered from 0."""

    language: str
    lesson: Lesson
    number: int

    @property
    def step(self) -> Step:
        """The step."""
        return self.lesson.steps[self.number]

    @property
    def start(self) -> Link:
        """The link that it begins at."""
        return self.lesson.start_of(self.number) or Link()

    @property
    def word(self) -> str:
        """The word for it in the link; on an English page an English one names no language."""
        named = "" if self.language == language() == ENGLISH else f"{self.language}."
        return f"{named}{self.lesson.name}.{self.number + 1}"


@dataclass(frozen=True)
class Answer:
    """An answer, as the link has it: where the question was asked, of which run, and numbers of options, or the number."""

    spot: Spot
    run: str
    words: str

    def __str__(self) -> str:
        spot = self.spot
        return f"{spot.kind}-{spot.layer}-{spot.head}-{spot.row}-{self.run}-{self.words}"


@dataclass(frozen=True)
class Shown:
    """The state of the card. `fold` is `f` where somebody has folded it, and `o` where they have opened it again."""

    is_done: bool = False
    n_hints: int = 0
    fold: str = ""

    def __str__(self) -> str:
        return f"{'d' if self.is_done else ''}{self.n_hints or ''}{self.fold}"


# ---- which lessons there are, and what the link says


def lessons(language: str) -> tuple[list[Lesson], list[str]]:
    """The shipped lessons of a language and then a teacher's own, which are read anew each time, since somebody may be writing
    them; and a sentence for each that cannot be shown. English ones lie in the teacher's folder, others in one named as the
    language is."""
    shipped, faults = _shipped(language)
    if (own := app_folders.lessons()) is None:
        return shipped, faults
    mine, my_faults = read_lessons(own if language == "en" else own / language)
    taken = {lesson.name for lesson in shipped}
    doubled = [
        say("{name}: a lesson of the app has this name; give it another", name=lesson.file.name)
        for lesson in mine
        if lesson.name in taken
    ]
    return [*shipped, *(lesson for lesson in mine if lesson.name not in taken)], [*faults, *my_faults, *doubled]


@cache
def _shipped(language: str) -> tuple[list[Lesson], list[str]]:
    return read_lessons(LESSONS / language)


def read_place(word: str) -> Place | None:
    """The step that a link names; None for what is none."""
    *named, name, number = ["", *word.split(".")][-3:]
    if not re.fullmatch(r"[1-9]\d?", number, re.ASCII):
        return None
    # A teacher's own lesson may be there in English alone.
    for code in [*filter(None, named)] or [language(), ENGLISH]:
        lesson = next((one for one in lessons(code)[0] if one.name == name), None) if code in languages() else None
        if lesson is not None:
            return Place(code, lesson, int(number) - 1) if int(number) <= len(lesson.steps) else None
    return None


def language() -> str:
    """The language of the lessons of this visit: its own, where there are lessons in it."""
    return now if (now := visit_language.current()) in languages() else ENGLISH


def explaining(term: str) -> Place | None:
    """The first step that explains a term of the glossary."""
    return _explaining(term, language())


@cache
def _explaining(term: str, now: str) -> Place | None:
    steps = ((lesson, number) for lesson in _shipped(now)[0] for number in range(len(lesson.steps)))
    return next((Place(now, *place) for place in steps if term in place[0].steps[place[1]].terms), None)


def current() -> Place | None:
    """The open step, from the link; `draw_shown` says there what the card shows."""
    state = st.session_state
    if not state.get(KEY) and KEY not in link.address():
        return None
    is_alone = KEY not in state and {*link.address()} <= {KEY, _CARD}
    word = link.hidden(KEY, lambda word: read_place(word) is not None, say("the name of a lesson and a step, as map.1"))
    link.hidden(ANSWER, lambda word: word == SKIPPED or _read_answer(word) is not None, say("what the card writes"))
    link.hidden(_CARD, _is_shown, say("what the card writes"))
    place = read_place(word) if word else None
    if place is not None:
        if is_alone:
            open_values(place.start)
            state[TO] = place.start.page
        state[_PLACE] = (place.lesson.file, place.number)
    return place


def unfolds() -> bool:
    """Whether the open step is about one row of what is written, so that later ones are seen when they are reached."""
    place = read_place(st.session_state.get(KEY, ""))
    if place is None or place.start.kind == "encoder":
        return False
    ask, do = place.step.ask, place.step.do
    return (ask is not None and COVERS[ask.kind] == "row") or (do is not None and do.verb == "step")


def answer() -> Answer | None:
    """The answer that was given, if any was."""
    return _read_answer(st.session_state[ANSWER])


def flags() -> str:
    """The answers, by their numbers, that somebody has flagged in the picture and not given yet."""
    return st.session_state.get(_FLAGS, "")


def hear(way: str) -> None:
    """Takes a press in the picture: a flag was set, or the curtain is to go; nonsense is passed over. For a callback."""
    if (asks := st.session_state.get(ASKS)) is None or (found := _WAY.fullmatch(way)) is None:
        return
    st.session_state[_FLAGS] = found[2]
    if found[1] == "look":
        look(*asks)


def look(unanswered: Answer, row: int | None) -> None:
    """Gives what is flagged as the answer; for a callback."""
    if words := flags():
        set_answer(str(replace(unanswered, words=words)), row)


def is_skipped() -> bool:
    """Tells whether the question was skipped."""
    return st.session_state[ANSWER] == SKIPPED


def shown() -> Shown:
    """Reads the state of the card."""
    match = _SHOWN.fullmatch(st.session_state.get(_CARD, ""))
    return Shown() if match is None else Shown(bool(match[1]), int(match[2] or 0), match[3])


def draw_shown() -> None:
    """Keeps the state of the card in the link: once it is known what is done."""
    link.hidden(_CARD, _is_shown, say("what the card writes"))


def _is_shown(word: str) -> bool:
    return _SHOWN.fullmatch(word) is not None


def _read_answer(word: str) -> Answer | None:
    if (match := _ANSWERED.fullmatch(word)) is None:
        return None
    kind = next(kind for kind in KINDS if kind == match["kind"])
    head = next((name for name in COMBINED if name == match["head"]), None)
    spot = Spot(kind, int(match["layer"]), int(match["head"]) if head is None else head, int(match["row"]))
    return Answer(spot, match["run"], match["words"])


# ---- what changes it, most of it for callbacks


def open_step(place: Place, is_example: bool = False) -> None:
    """Opens a step where it begins. One without a link of its own goes on where the page is, unless its example is wanted."""
    state, start = st.session_state, place.start
    # Who goes on in a card that was opened by hand has it open.
    kept = shown().fold if state.get(KEY) else ""
    state[KEY], state[ANSWER], state[_CARD], state[WAITS] = place.word, "", str(Shown(fold=kept)), None
    state[_FLAGS] = ""
    if is_example or place.step.start is not None or state.get(_PLACE) != (place.lesson.file, place.number - 1):
        open_values(start)
        state[TO] = start.page
    state[AWAITS] = False
    state.pop(BEFORE, None)


def following(place: Place) -> Place | None:
    """The first step of the lesson after this one; None after the last."""
    all_lessons = lessons(place.language)[0]
    names = [lesson.name for lesson in all_lessons]
    after = names.index(place.lesson.name) + 1 if place.lesson.name in names else len(names)
    return Place(place.language, all_lessons[after], 0) if after < len(all_lessons) else None


def go_on(place: Place, to: Place | None = None) -> None:
    """To the next step; after the last one to another lesson, or to the list of all. A step that asks nothing and has
    nothing to be done is done with that."""
    if place.step.ask is None and place.step.do is None:
        mark(place.lesson.name, place.number)
    if place.number + 1 < len(place.lesson.steps):
        open_step(replace(place, number=place.number + 1))
    elif to is not None:
        open_step(to)
    else:
        close()
        st.session_state[TO] = "learn"


def close() -> None:
    """Puts the card away."""
    for key in (KEY, ANSWER, _CARD, _FLAGS):
        st.session_state[key] = ""


def set_answer(words: str, row: int | None = None) -> None:
    """An answer, or that there is to be none. Explore goes to the row that the question was about, to show what is right."""
    st.session_state[ANSWER], st.session_state[_FLAGS] = words, ""
    if row is not None:
        link.open_values({"step": str(row + 1)}, ["step"])


def set_shown(now: Shown) -> None:
    """Sets the state of the card, before `draw_shown`."""
    st.session_state[_CARD] = str(now)


def open_values(start: Link) -> None:
    """The page has the values of this link as soon as it is drawn."""
    names = [name for name in names_of_page(start.page) if name in start.values or name not in _PERSONAL]
    link.open_values(start.values, names)


# ---- what is finished


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
    """The cookie that the browser is to keep; empty where it knows all of it."""
    if not st.session_state.get(_IS_NEW):
        return ""
    return f"{COOKIE}={'~'.join(f'{name}.{bits:x}' for name, bits in [*_steps().items()][-_MOST:])}"


def _steps() -> dict[str, int]:
    state = st.session_state
    if _STEPS not in state:
        cookie_text = st.context.cookies.get(COOKIE, "")
        matches = [*map(_LESSON.fullmatch, cookie_text.split("~"))] if isinstance(cookie_text, str) else []
        state[_STEPS] = {one[1]: int(one[2], 16) for one in matches[:_MOST] if one is not None}
    return state[_STEPS]
