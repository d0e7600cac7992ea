"""The card of a lesson, beside the page: one step's text, its question, hints, and the way on.

Which lesson and step it is stands in the link (`lesson=map.3`, in another language `lesson=zh.map.3`), and so does what was
answered. Until then a page draws nothing that tells the answer: it asks `ask` of its run, and draws what the cover allows. A
page that does not ask is not drawn meanwhile; the way on, *Skip*, and the end of the lesson are always open.
"""

import base64
import hashlib
import mimetypes
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import streamlit as st

from transformer_viz import app_folders
from transformer_viz.errors import TransformerVizError
from transformer_viz.learn.example_run import Example, example_run, measured
from transformer_viz.learn.lesson import LESSONS, Ask, Lesson, Piece, Step, read_lessons
from transformer_viz.learn.links import Link, names_of_page, read_link
from transformer_viz.learn.points import POINTS
from transformer_viz.learn.questions import NotAsked, Question, Spot, question
from transformer_viz.learn.words import Words, languages, words
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.numbers_in_words import number_words
from transformer_viz.terms import COMBINED, KIND_TITLES, KINDS, MISTAKE_TITLES
from transformer_viz.trace.hidden_answer import hide_answer
from transformer_viz.trace.trace import Trace
from transformer_viz.untrusted_files import read_bytes
from transformer_viz.views import pages, path
from transformer_viz.views.components import chart
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.state import focus, link
from transformer_viz.views.state.display_options import DisplayOptions

KEY, _ANSWER = "lesson", "lesson_answer"
_PLACE, _TO, _BEFORE, _HINTS, _FOLDED, _WAITS = (
    f"lesson_{name}" for name in ("place", "to", "before", "hints", "folded", "waits")
)
"""In the session: the step that is open, where to go first, the link at its beginning, how many hints are shown, whether the
card is folded, and whether its question waits for an answer."""
_CARD, _ASKED, _AWAITS = "lesson_card", "lesson_asked", "lesson_awaits"
"""Likewise: the card of this run; the question that was made last; and whether the step waits for something to be done:
then what the player reports is of the whole page."""
_SKIPPED = "skip"
_ANSWERED = re.compile(
    r"(?P<kind>encoder|decoder|cross)-(?P<layer>\d{1,3})-(?P<head>\d{1,3}|mean|max)-(?P<row>\d{1,4})-(?P<run>[0-9a-f]{8})-"
    r"(?P<answer>[0-9eE+.-]{1,80})",
    re.ASCII,
)
"""Where the question was asked, of which run, and the answer: numbers of options, or the number."""
_TAGS = {"strong": "b", "emphasis": "em", "code": "code"}
_PERSONAL = ("all_controls", "device", "projector", "where")
"""A step leaves these as they are, unless its link names them."""
_LARGEST_IMAGE, _MOST_BELOW = 1_000_000, 5
_CSS = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


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
        """Where it begins."""
        return self.lesson.start_of(self.number) or Link()

    @property
    def word(self) -> str:
        """As the link has it."""
        return f"{'' if self.language == 'en' else f'{self.language}.'}{self.lesson.name}.{self.number + 1}"


@dataclass(frozen=True)
class Cover:
    """What a page may draw before an answer: the run before a row, or no picture at all."""

    row: int | None


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
        f"{lesson.file.name}: a lesson of the app has this name; give it another" for lesson in mine if lesson.name in taken
    ]
    return [*shipped, *(lesson for lesson in mine if lesson.name not in taken)], [*faults, *my_faults, *doubled]


@cache
def _shipped(language: str) -> tuple[list[Lesson], list[str]]:
    return read_lessons(LESSONS / language)


def read_place(word: str) -> Place | None:
    """The step that a link names; None for what is none."""
    *language, name, number = ["", "", *word.split(".")][-3:]
    code = next(iter(filter(None, language)), "en")
    if code not in languages() or not re.fullmatch(r"[1-9]\d?", number, re.ASCII):
        return None
    lesson = next((one for one in lessons(code)[0] if one.name == name), None)
    return None if lesson is None or int(number) > len(lesson.steps) else Place(code, lesson, int(number) - 1)


def open_step(place: Place, is_example: bool = False) -> None:
    """Opens a step where it begins; for a callback. One without a link of its own goes on where the page is, unless its example
    is wanted."""
    state, start = st.session_state, place.start
    state[KEY], state[_ANSWER], state[_HINTS], state[_WAITS], state[_FOLDED] = place.word, "", 0, None, False
    if is_example or place.step.start is not None or state.get(_PLACE) != (place.lesson.file, place.number - 1):
        _open_values(start)
        state[_TO] = start.page
    state[_AWAITS] = False
    state.pop(_BEFORE, None)
    state.pop(f"lesson_done {place.word}", None)


def close() -> None:
    """Puts the card away; for a callback."""
    st.session_state[KEY], st.session_state[_ANSWER] = "", ""


@contextmanager
def beside(title: str) -> Generator[bool]:
    """Around a page: draws the card where a lesson is open. Gives whether the page may be drawn."""
    state = st.session_state
    if not state.get(KEY) and KEY not in st.query_params:
        yield True
        return
    here = {page.TITLE: path(page) for page in pages()}[title]
    to = state.pop(_TO, here)
    if to != here:
        _draw_links()
        link.go_to(next(page.TITLE for page in pages() if path(page) == to))
    place = _draw_links()
    if place is None:
        yield True
        return
    state[_PLACE] = (place.lesson.file, place.number)
    card = state[_CARD] = _Card(place, here)
    try:
        yield card.begin()
    finally:
        # Also where a page ends early, as with a text that cannot be read.
        del state[_CARD]
    card.end()


def _draw_links() -> Place | None:
    """What the link has of the lesson, in boxes that nobody sees."""
    word = link.hidden(KEY, lambda word: read_place(word) is not None, "the name of a lesson and a step, as map.1")
    link.hidden(_ANSWER, _is_answer, "what the card writes")
    return read_place(word) if word else None


def waits() -> bool:
    """Whether a question of a lesson waits for its answer."""
    return _CARD in st.session_state and st.session_state[_CARD].is_waiting


def ask(trace: Trace, model: LoadedModel, searched: Trace | None = None, *, is_by_words: bool = False) -> Cover | None:
    """Asks the open step's question of the run of a page.

    Args:
        trace: the run.
        model: that made it.
        searched: the search that it is a branch of.
        is_by_words: whether the page shows it by words.

    Returns:
        What the page may draw before the answer; None where nothing is to be covered.
    """
    card = st.session_state.get(_CARD)
    if card is None:
        return None
    now = focus.current()
    example = Example(model, trace, Spot(now.kind, now.layer, now.head, now.step))
    return card.ask(example, searched, is_by_words=is_by_words)


class _Card:
    """The card of one run of the page."""

    def __init__(self, place: Place, here: str) -> None:
        self.place, self.step, self.here = place, place.step, here
        self.say: Words = words(place.language)
        self.is_waiting = False
        self._was_asked = False

    def begin(self) -> bool:
        """Draws what does not hang on the run. Gives whether the page may be drawn."""
        state, step, say = st.session_state, self.step, self.say
        number, n = self.place.number, len(self.place.lesson.steps)
        point = POINTS.get(step.point)
        css = _CSS
        if point is not None and (not point.pages or self.here in point.pages):
            # Names and selectors are the app's own.
            css += f":is({point.selector}) {{ outline: 3px solid var(--chosen); outline-offset: 4px; border-radius: 0.3rem; }}"
        st.html(f"<style>{css}</style>")
        with st.container(key="lesson-card"):
            with st.container(horizontal=True, vertical_alignment="center", key="lesson-head"):
                counted = say("card.step", n=number + 1, m=n)
                st.html(f'<p class="lesson-step">{escape(self.place.lesson.title)} · {escape(counted)}</p>')
                is_folded = bool(state.get(_FOLDED))
                name, icon = ("unfold", "expand_less") if is_folded else ("fold", "expand_more")
                fold: Any = {"on_click": _set, "args": (_FOLDED, not is_folded), "type": "tertiary"}
                st.button(say(f"card.{name}"), "lesson-fold", icon=f":material/{icon}:", **fold)
                st.button(say("card.close"), "lesson-close", on_click=close, icon=":material/close:", type="tertiary")
            self._question = st.container(key="lesson-question")
            if not is_folded:
                with self._question:
                    st.html(f'<h2>{escape(step.title)}</h2><div class="lesson-text">{self._paragraphs()}</div>')
            self._hints = st.container(key="lesson-hints")
            self._ways = st.container(horizontal=True, key="lesson-ways")
        # Until a run is asked it is as it was last.
        known = state.get(_WAITS)
        self.is_waiting = step.ask is not None and (not state[_ANSWER] if known is None else known)
        if step.ask is None or self.here in ("learn", self.place.start.page):
            # Explore asks of its own run, and other pages not at all.
            is_own = step.ask is not None and self.here not in ("learn", "explore")
            return not is_own or self._ask_of_link(step.ask) is None
        if self.is_waiting:
            st.info(say("card.other-page"), icon=":material/visibility_off:")
        return not self.is_waiting

    def ask(self, example: Example, searched: Trace | None = None, *, is_by_words: bool = False) -> Cover | None:
        """Draws the question, or what became of it."""
        step, state = self.step, st.session_state
        if step.ask is None or self._was_asked or self.here != self.place.start.page:
            return None
        self._was_asked = True
        if step.ask.kind == "greedy-or-beam" and searched is not None:
            example = replace(example, trace=searched)
        run = hashlib.sha256(repr((example.model.name, example.trace.source, self.place.word)).encode()).hexdigest()[:8]
        at, answer = example.focus, _SKIPPED if state[_ANSWER] == _SKIPPED else None
        if (found := _ANSWERED.fullmatch(state[_ANSWER])) is not None and found["run"] == run:
            kind = next(one for one in KINDS if one == found["kind"])
            head: Any = found["head"] if found["head"] in COMBINED else int(found["head"])
            at, answer = Spot(kind, int(found["layer"]), head, int(found["row"])), found["answer"]
        asked = self._find(example, step.ask, at)
        state[_WAITS] = self.is_waiting = isinstance(asked, Question) and answer is None
        if not state.get(_FOLDED):
            with self._question:
                self._draw_question(asked, run, answer)
        if not isinstance(asked, Question) or not self.is_waiting:
            return None
        spot, trace = asked.spot, example.trace
        is_whole = asked.covers == "mask" or is_by_words or (asked.covers == "search" and searched is not None)
        if asked.covers == "row":
            is_whole |= spot.kind == "encoder" or spot.row < trace.n_given or not trace.writes
            return Cover(None if is_whole else spot.row)
        return Cover(None if is_whole or asked.covers == "mistake" else trace.n_steps)

    def _find(self, example: Example, ask: Ask, at: Spot) -> Question | NotAsked:
        state = st.session_state
        of = (focus.run_of(example.trace), example.model.name, self.place.word, at)
        if state.get(_ASKED, (None,))[0] != of:
            try:
                found = question(measured(replace(example, focus=at), ask), ask, at, self.place.language)
            except TransformerVizError as error:
                found = NotAsked(str(error))
            state[_ASKED] = (of, found)
        return state[_ASKED][1]

    def _ask_of_link(self, ask: Ask) -> Cover | None:
        """Of a page that asks nothing of its own run: the run of the step's own link."""
        try:
            example = _run_of(self.place.start.address, is_of_writing=ask.kind == "writes")
        except TransformerVizError as error:
            self._say(str(error))
            return None
        cover = None if example is None else self.ask(example)
        if example is not None and cover is not None:
            st.info(self.say("card.covered"), icon=":material/visibility_off:")
            # What is not drawn has no address: a reload opens the page where the step begins, too.
            _open_values(self.place.start)
            if ask.kind == "mistake":
                _draw_masks(example)
        return cover

    def _draw_question(self, asked: Question | NotAsked, run: str, answer: str | None) -> None:
        say = self.say
        if isinstance(asked, NotAsked):
            self._say(asked.why)
            if self.here == self.place.start.page:
                st.button(say("card.example"), key="lesson-example", on_click=open_step, args=(self.place, True))
            return
        spot = asked.spot
        place = f"{spot.kind}-{spot.layer}-{spot.head}-{spot.row}-{run}"
        self._say(asked.text)
        if answer is None:
            key = f"lesson-answer-{self.place.word}-{place}"
            with st.form(key=f"{key}-form", border=False):
                looks: Any = {"label_visibility": "collapsed"}
                if asked.number is not None:
                    st.number_input(literal(asked.text), value=None, format="%0.3f", step=0.01, key=key, **looks)
                elif asked.is_several:
                    for number, option in enumerate(asked.options):
                        st.checkbox(literal(option), key=f"{key}-{number}")
                else:
                    labels, options = [*map(literal, asked.options)], range(len(asked.options))
                    # Keys of a long row stand side by side.
                    looks |= {"horizontal": len(options) > _MOST_BELOW}
                    st.radio(literal(asked.text), options, None, labels.__getitem__, key=key, **looks)
                arguments = (key, place, len(asked.options) if asked.is_several else None)
                st.form_submit_button(say("card.answer"), type="primary", on_click=_answer, args=arguments)
            return
        given = _read_answer(asked, answer)
        is_right = given is not None and asked.is_right(given)
        parts = [] if given is None else [say("card.said", said=_said(asked, given, say))]
        parts += [*([] if is_right else [say("card.is-right", right=_said(asked, _right(asked), say))]), asked.why]
        judged = say("card.skipped" if given is None else "card.right" if is_right else "card.wrong")
        st.html(f'<p class="lesson-say" role="status"><b>{escape(judged)}</b> {_with_code(" ".join(parts))}</p>')

    def end(self) -> None:
        """After the page: what has been done, hints and the ways on, which hang on the answer."""
        state, step, say, place = st.session_state, self.step, self.say, self.place
        if state.get(_FOLDED):
            return
        now = _link_of_page(place.start.page if self.here == "learn" else self.here)
        before = state.setdefault(_BEFORE, now)
        with self._question:
            if step.do is not None:
                done = f"lesson_done {place.word}"
                state[done] = state.get(done, False) or step.do.is_done(before, now)
                state[_AWAITS] = not state[done]
                if state[done]:
                    st.html(f'<p class="lesson-say" role="status"><b>✓ {escape(say("card.done"))}</b></p>')
            if self.here != place.start.page:
                st.button(say("card.to-page"), key="lesson-home", on_click=_set, args=(_TO, place.start.page))
        shown = min(state.get(_HINTS, 0), len(step.hints))
        with self._hints:
            for hint in step.hints[:shown]:
                self._say(hint)
        last = place.number + 1 == len(place.lesson.steps)
        with self._ways:
            if place.number:
                back = Place(place.language, place.lesson, place.number - 1)
                st.button(say("card.back"), key="lesson-back", on_click=open_step, args=(back,))
            if shown < len(step.hints):
                st.button(say("card.hint"), key="lesson-hint", on_click=_set, args=(_HINTS, shown + 1))
            if self.is_waiting:
                st.button(say("card.skip"), key="lesson-skip", on_click=_set, args=(_ANSWER, _SKIPPED))
            elif last:
                st.button(say("card.end"), key="lesson-next", type="primary", on_click=_end)
            else:
                onward = Place(place.language, place.lesson, place.number + 1)
                st.button(say("card.next"), key="lesson-next", type="primary", on_click=open_step, args=(onward,))

    def _say(self, sentence: str) -> None:
        st.html(f'<p class="lesson-say">{_with_code(sentence)}</p>')

    def _paragraphs(self) -> str:
        return "".join(f"<p>{''.join(map(self._piece, paragraph))}</p>" for paragraph in self.step.text)

    def _piece(self, piece: Piece) -> str:
        """A piece as an element; what a lesson says is text alone."""
        said = escape(piece.text)
        if piece.style == "link":
            both = "&" if "?" in piece.target else "?"
            return f'<a href="{escape(f"{piece.target}{both}{KEY}={quote(self.place.word)}")}" target="_self">{said}</a>'
        if piece.style == "image":
            return f'<img alt="{said}" src="{_image(self.place.lesson.file.parent / piece.target)}">'
        tag = _TAGS.get(piece.style)
        return f"<{tag}>{said}</{tag}>" if tag else said


# ---- what becomes of a press


def _open_values(start: Link) -> None:
    names = [name for name in names_of_page(start.page) if name in start.values or name not in _PERSONAL]
    link.open_values(start.values, names)


def _set(key: str, value: Any) -> None:
    st.session_state[key] = value


def _end() -> None:
    close()
    st.session_state[_TO] = "learn"


def _answer(key: str, place: str, n_options: int | None) -> None:
    state = st.session_state
    if n_options is None:
        given = state.get(key)
        words_of = None if given is None else f"{given:.6g}" if isinstance(given, float) else str(given)
    else:
        words_of = "+".join(str(number) for number in range(n_options) if state.get(f"{key}-{number}")) or None
    if words_of is not None:
        state[_ANSWER] = f"{place}-{words_of}"


# ---- answers in words


def _is_answer(word: str) -> bool:
    return word == _SKIPPED or _ANSWERED.fullmatch(word) is not None


def _read_answer(asked: Question, word: str) -> list[int] | float | None:
    """What was answered; None where the step was skipped, or a link has what is no answer."""
    try:
        if asked.number is not None:
            return float(word)
        numbers = [int(part) for part in word.split("+")]
    except ValueError:
        return None
    return numbers if all(0 <= number < len(asked.options) for number in numbers) else None


def _right(asked: Question) -> list[int] | float:
    return sorted(asked.right) if asked.number is None else asked.number


def _said(asked: Question, answer: list[int] | float, say: Words) -> str:
    if isinstance(answer, int | float):
        return number_words(answer, 3 if abs(answer) < 0.1 else 2)
    return say.list([f"`{asked.options[number]}`" for number in answer])


def _with_code(sentence: str) -> str:
    """What stands in backquotes as code; all else is text."""
    parts = sentence.split("`")
    return "".join(f"<code>{escape(part)}</code>" if place % 2 else escape(part) for place, part in enumerate(parts))


# ---- what a step shows


def _image(file: Path) -> str:
    try:
        data = base64.b64encode(read_bytes(file, _LARGEST_IMAGE)).decode("ascii")
    except (OSError, TransformerVizError):
        return ""
    return f"data:{mimetypes.guess_type(file.name)[0] or 'image/png'};base64,{data}"


def _link_of_page(page: str) -> Link:
    """The page as it stands, with every value, as `Action.is_done` compares it."""
    names, said = names_of_page(page), link.all_words()
    named = {title: name for name, title in MISTAKE_TITLES.items()}
    if "mistake" in said:
        said["mistake"] = named.get(said["mistake"], said["mistake"])
    return Link(page, {name: word for name, word in said.items() if name in names})


@lru_cache(maxsize=8)
def _run_of(address: str, *, is_of_writing: bool) -> Example | None:
    return example_run(read_link(address), is_of_writing=is_of_writing)


def _draw_masks(example: Example) -> None:
    """All heads, without a word of what made their masks."""
    from transformer_viz.views.components import stepper  # which draws this card's covered runs too

    spot = example.focus
    at = focus.Focus("lesson", spot.kind, spot.layer, spot.head, spot.row)
    trace = replace(hide_answer(example.trace, example.trace.n_steps), mistake="", edits=())
    for kind, call in stepper.mosaic_calls(trace, DisplayOptions(is_large=False, with_answer=False), at).items():
        chart.show(call(), f"lesson-masks-{kind}", f"{KIND_TITLES[kind]}: which cells are masked.")
