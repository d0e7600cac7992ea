"""The card of a lesson, beside the page: one step's text, its question, hints, and the way on.

Until the question is answered a page draws nothing that tells the answer. Explore, Masks and Train ask `ask` of their own
run, and draw what the cover allows. A page that does not ask is not drawn meanwhile; the way on, *Skip*, and the end of the
lesson are always open.
"""

import base64
import hashlib
import math
import mimetypes
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import streamlit as st

from transformer_viz.errors import TransformerVizError
from transformer_viz.language import say
from transformer_viz.learn.covers import Cover, cover_of
from transformer_viz.learn.example_run import Example, example_of, measured
from transformer_viz.learn.lesson import Piece
from transformer_viz.learn.links import Link, names_of_page
from transformer_viz.learn.points import POINTS
from transformer_viz.learn.questions import COVERS, NotAsked, Question, Spot, code, question
from transformer_viz.learn.words import Words, words
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.numbers_in_words import LONGEST_NUMBER, typed_number
from transformer_viz.terms import MISTAKE_TITLES, kind_words
from transformer_viz.trace.hidden_answer import COVERED, hide_answer
from transformer_viz.trace.trace import Trace
from transformer_viz.untrusted_files import read_bytes
from transformer_viz.views import pages, path
from transformer_viz.views.components import chart
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.state import focus, lesson_place, link
from transformer_viz.views.state.display_options import DisplayOptions
from transformer_viz.views.state.early_end import EarlyEnd
from transformer_viz.views.state.lesson_place import AWAITS, BEFORE, TO, WAITS, Answer, Place

_CARD, _ASKED = "lesson_card_now", "lesson_asked"
"""In the session: the card of this run, and the question that was made last."""
MASKS_KEY = "lesson-masks"
"""The key of a chart of Masks that is drawn before an answer, in the place of its tabs."""
_TAGS = {"strong": "b", "emphasis": "em", "code": "code"}
_ASKING = ("explore", "masks", "train")
"""Pages that ask of what they show."""
_LARGEST_IMAGE = 1_000_000
_MOST_CELLS = 40
"""Cells of a row that can be told apart and pressed."""
_NONE = "lesson_none"
"""In the session: the number of the answer that nothing is masked."""
_MOST_BELOW = 5
"""Options that stand below each other; the keys of a long row stand side by side."""
_CSS = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Covered:
    """The cover of a page before an answer: what it may not draw, the question, words for it, and what the picture is told."""

    cover: Cover
    asked: Question
    words: str
    picture: Mapping[str, Any] | None = None


@contextmanager
def beside(title: str) -> Generator[bool]:
    """Around a page: draws the card where a lesson is open. Gives whether the page may be drawn."""
    here = {page.TITLE: path(page) for page in pages()}[title]
    place = lesson_place.current()
    # Until the page is there: this one may be drawn anew before the browser has pressed the other's link.
    to = st.session_state.get(TO, here)
    if to != here:
        link.go_to(next(page.TITLE for page in pages() if path(page) == to))
    st.session_state.pop(TO, None)
    if place is None:
        yield True
        return
    card = st.session_state[_CARD] = _Card(place, here)
    end = None
    try:
        yield card.draw_beginning()
    except EarlyEnd as early:
        end = early
    finally:
        del st.session_state[_CARD]
    card.draw_end(is_whole=end is None)
    if end is not None:
        raise end


def waits() -> bool:
    """Tells whether a question of a lesson waits for its answer."""
    return _CARD in st.session_state and st.session_state[_CARD].is_waiting


def nothing_is_shown() -> None:
    """Notes that what was typed cannot be read, so that a step that asks for another text is not done by it."""
    if (card := st.session_state.get(_CARD)) is not None:
        card.is_unread = True


def ask(
    trace: Trace,
    model: LoadedModel,
    searched: Trace | None = None,
    *,
    written: Trace | None = None,
) -> Covered | None:
    """Asks the open step's question of the run of a page.

    Args:
        trace: the run.
        model: that made it.
        searched: the search that it is a branch of.
        written: what the model writes by itself, where the run only reads its target.

    Returns:
        What the page may not draw before the answer; None where nothing is to be covered.
    """
    card, state = st.session_state.get(_CARD), st.session_state
    if card is None:
        return None
    trace = written if written is not None and card.step.ask is not None and card.step.ask.kind == "writes" else trace
    # Masks and Train have no step of their own.
    row = focus.current().step if card.here == "explore" else (card.place.start.number("step") or 1) - 1
    example = Example(model, trace, Spot(state.kind, state.layer, state.head, row))
    return card.ask(example, searched)


def hides_search() -> bool:
    """Tells whether the open question is about a search, of which nothing may be seen: then the page shows the greedy run."""
    card = st.session_state.get(_CARD)
    asks = None if card is None or not card.is_at_home else card.step.ask
    is_open = asks is not None and lesson_place.answer() is None and not lesson_place.is_skipped()
    return is_open and COVERS[asks.kind] == "search"


def flagged() -> Mapping[str, Any] | None:
    """The flags of an answer that was given, for the picture: they stay. None where there is none."""
    return None if (card := st.session_state.get(_CARD)) is None else card.flagged


def at_start(name: str) -> str | None:
    """The value of a control in the link of the open step; None where no lesson is open."""
    card = st.session_state.get(_CARD)
    return None if card is None else card.place.start.values.get(name)


class _Card:
    """The card of one run of the page: its methods are called in their order."""

    def __init__(self, place: Place, here: str) -> None:
        self.place, self.step, self.here = place, place.step, here
        self.shown, self.say = lesson_place.shown(), words(place.language)
        self.is_at_home = here == place.start.page
        self.is_waiting = self._was_asked = self.is_unread = False
        self._row: int | None = None
        self.flagged: Mapping[str, Any] | None = None

    def draw_beginning(self) -> bool:
        """Draws what does not hang on the run. Gives whether the page may be drawn."""
        step, worded, lesson = self.step, self.say, self.place.lesson
        folded = self.shown.fold == "f"
        st.html(f"<style>{_CSS}{_rules(self.shown.fold, step.point, self.here)}</style>")
        with st.container(key="lesson-card"):
            with st.container(horizontal=True, vertical_alignment="center", key="lesson-head"):
                counted = worded("card.step", n=self.place.number + 1, m=len(lesson.steps))
                st.html(f'<p class="lesson-step">{escape(lesson.title)} · {escape(counted)}</p>')
                name, icon, fold = ("unfold", "expand_less", "o") if folded else ("fold", "expand_more", "f")
                looks: Any = {"icon": f":material/{icon}:", "type": "tertiary"}
                folding = replace(self.shown, fold=fold)
                st.button(worded(f"card.{name}"), "lesson-fold", on_click=lesson_place.set_shown, args=(folding,), **looks)
                st.button(
                    worded("card.close"), "lesson-close", on_click=lesson_place.close, icon=":material/close:", type="tertiary"
                )
            st.html(f'<h2 tabindex="-1" data-card="{escape(self.place.word)}">{escape(step.title)}</h2>')
            self._line = st.container(key="lesson-line")
            with st.container(key="lesson-more"):
                text = "".join(f"<p>{''.join(map(self._element, pieces))}</p>" for pieces in step.text)
                st.html(f'<div class="lesson-text">{text}</div>')
                self._question, self._hints = st.container(key="lesson-question"), st.container(key="lesson-hints")
                self._end = st.container()
                self._ways = st.container(horizontal=True, key="lesson-ways")
        if step.ask is None:
            return True
        # Until a run is asked it is as it was last.
        known = st.session_state.get(WAITS)
        self.is_waiting = lesson_place.answer() is None and not lesson_place.is_skipped() if known is None else known
        if self.is_at_home and (step.ask.kind == "mistake" or self.here not in _ASKING):
            # Of the run of the step's link: a mistake that the learner has chosen is no riddle.
            try:
                example = example_of(self.place.start.address, is_of_writing=step.ask.kind == "writes")
            except TransformerVizError as error:
                with self._question:
                    self._say(str(error))
                return True
            if example is None or self.ask(example) is None:
                return True
            # What is not drawn has no address: a reload opens the page where the step begins, too.
            lesson_place.open_values(self.place.start)
            if step.ask.kind == "mistake":
                _draw_masks(example)
            else:
                st.info(worded("card.other-page"), icon=":material/visibility_off:")
            return False
        if self.is_waiting and not self.is_at_home and self.here != "learn":
            st.info(worded("card.other-page"), icon=":material/visibility_off:")
            return False
        return True

    def ask(self, example: Example, searched: Trace | None = None) -> Covered | None:
        """Draws the question, or what became of it."""
        if self.step.ask is None or self._was_asked or not self.is_at_home:
            return None
        self._was_asked = True
        if self.step.ask.kind == "greedy-or-beam" and searched is not None:
            example = replace(example, trace=searched)
        trace = example.trace
        of = (example.model.name, trace.source, self.place.word, *filter(None, (trace.mistake, trace.edits)))
        run = hashlib.sha256(repr(of).encode()).hexdigest()[:8]
        given = lesson_place.answer()
        given = given if given is not None and given.run == run else None
        at = example.focus if given is None else given.spot
        place = (focus.run_of(example.trace), example.model.name, self.place.word, at)
        if st.session_state.get(_ASKED, (None,))[0] != place:
            try:
                example = replace(example, focus=at)
                made = question(measured(example, self.step.ask), self.step.ask, at, self.place.language)
            except TransformerVizError as error:
                made = NotAsked(str(error))
            st.session_state[_ASKED] = (place, made)
        asked: Question | NotAsked = st.session_state[_ASKED][1]
        is_open = given is None and not lesson_place.is_skipped()
        st.session_state[WAITS] = self.is_waiting = is_open and isinstance(asked, Question)
        with self._question:
            if isinstance(asked, NotAsked):
                self._say(asked.why)
                st.button(self.say("card.example"), "lesson-example", on_click=lesson_place.open_step, args=(self.place, True))
                return None
            # Elsewhere than on Explore there may be several texts.
            asks = asked.text if self.here == "explore" else f"{code(trace.source)}: {asked.text}"
            self._say(asks)
            with self._line:
                self._say(asks)
            if self.is_waiting:
                cover = cover_of(asked, self.step.ask, trace)
                if self.here == "explore" and cover.step is not None and cover.step < trace.n_steps:
                    self._row = cover.step
                unanswered = Answer(asked.spot, run, "")
                in_picture = self.here == "explore" and 0 < len(asked.columns) <= _MOST_CELLS
                if in_picture:
                    st.session_state[lesson_place.ASKS] = (unanswered, self._row)
                    self._draw_flags(asked, unanswered)
                # The list stands behind a fold where the picture takes the answer.
                with st.expander(self.say("card.by-list"), key="lesson-list") if in_picture else st.container():
                    _draw_form(asked, unanswered, self._row, self.say)
                of = "-masks" if cover.is_of_masks else "-tree" if cover.is_of_search else ""
                of = of or ("-step" if asked.kind == "writes" else "")
                words = self.say(f"card.covered{of}", row=asked.spot.row + 1)
                flags = _numbers(asked, lesson_place.flags())
                return Covered(cover, asked, words, self._picture(asked, flags, is_open=False) if in_picture else None)
            answer = None if given is None else _read_words(asked, given.words)
            _draw_judged(asked, answer, self._because(asked, trace), self.say)
            if self.here == "explore" and asked.is_of_row and asked.columns and isinstance(answer, list):
                self.flagged = self._picture(asked, answer, is_open=True)
            if answer is not None:
                lesson_place.mark(self.place.lesson.name, self.place.number)
        return None

    def _draw_flags(self, asked: Question, unanswered: Answer) -> None:
        """Draws what to press in the picture, what is flagged there, and the button that draws the curtain aside."""
        row, flags = asked.spot.row + 1, _numbers(asked, lesson_place.flags())
        how = "in-letters" if not asked.is_of_row else "paint" if asked.is_several else "in-row"
        how = "in-cells" if how == "in-row" and asked.spot.kind == "decoder" else how
        st.html(f'<p class="lesson-say">{escape(self.say(f"card.{how}", row=row))}</p>')
        if flags:
            named = "painted" if asked.is_several else "your-flag" if asked.is_of_row else "your-word"
            flagged = _with_code(self.say(f"card.{named}", said=_said(asked, flags, self.say)))
            st.html(f'<p class="lesson-say lesson-flag" role="status">{flagged}</p>')
        if not flags and asked.is_several:
            # Nothing painted is an answer too: that the row may look at all.
            st.session_state[_NONE] = len(asked.options) - 1
        looks: Any = {"type": "primary", "on_click": _look, "args": (unanswered, self._row, asked.is_several)}
        st.button(self.say("card.look"), "lesson-look", disabled=not (flags or asked.is_several), **looks)

    def _picture(self, asked: Question, flags: list[int], *, is_open: bool) -> Mapping[str, Any]:
        """The question as the picture is told of it."""
        spot, worded = asked.spot, self.say
        is_of_source = not asked.is_of_row or (spot.kind != "decoder" and not asked.is_several)
        columns = [(place, number) for place, number in enumerate(asked.columns) if number in flags]
        return {
            "kind": spot.kind,
            "layer": spot.layer,
            "head": spot.head,
            "row": spot.row if asked.is_of_row else None,
            "isOfSource": is_of_source,
            "isSeveral": asked.is_several,
            "none": len(asked.options) - 1 if asked.is_several else None,
            "columns": list(asked.columns),
            "flags": [place for place, _ in columns],
            "isOpen": is_open,
            "words": {"asks": asked.text.replace("`", ""), "covered": say(COVERED), "look": worded("card.look")},
        }

    def _because(self, asked: Question, trace: Trace) -> str:
        """Why: in the lesson's own words, of its own run; of another text, unless it asks for one, what this run says."""
        ask, start = self.step.ask, self.place.start.values
        assert ask is not None
        is_general = self.step.do is not None and self.step.do.verb == "text"
        is_meant = is_general or start.get("text", trace.source) == trace.source
        return ask.because if ask.because and is_meant else asked.why

    def draw_end(self, *, is_whole: bool) -> None:
        """After the page: what has been done, hints and the ways on, which hang on the answer. What a page that ended early
        has not drawn was not done."""
        state, step, worded, place = st.session_state, self.step, self.say, self.place
        # The page as it stands, with every value, as `Action.is_done` compares it.
        page, words = place.start.page if self.here == "learn" else self.here, link.all_words()
        if "mistake" in words:
            titles = {title: name for name, title in MISTAKE_TITLES.items()}
            words["mistake"] = titles.get(words["mistake"], words["mistake"])
        names = names_of_page(page)
        now = Link(page, {name: word for name, word in words.items() if name in names})
        before = state.setdefault(BEFORE, now) if is_whole else now
        if step.do is not None and is_whole and not self.is_unread:
            self.shown = replace(self.shown, is_done=self.shown.is_done or step.do.is_done(before, now))
            lesson_place.set_shown(self.shown)
            state[AWAITS] = not self.shown.is_done
            if self.shown.is_done and step.ask is None:
                lesson_place.mark(place.lesson.name, place.number)
        lesson_place.draw_shown()
        with self._question:
            if self.shown.is_done:
                st.html(f'<p class="lesson-say" role="status"><b>✓ {escape(worded("card.done"))}</b></p>')
            if not self.is_at_home:
                st.button(worded("card.to-page"), "lesson-home", on_click=state.update, kwargs={TO: place.start.page})
        n_hints = min(self.shown.n_hints, len(step.hints))
        with self._hints:
            for hint in step.hints[:n_hints]:
                self._say(hint)
        with self._ways:
            # First for the keyboard, and last to be seen.
            if not self.is_waiting:
                if place.number + 1 < len(place.lesson.steps):
                    words = worded("card.next")
                    st.button(words, "lesson-next", type="primary", on_click=lesson_place.go_on, args=(place,))
                else:
                    self._draw_ways_out()
            if place.number:
                back = replace(place, number=place.number - 1)
                st.button(worded("card.back"), "lesson-back", on_click=lesson_place.open_step, args=(back,))
            if n_hints < len(step.hints):
                more = replace(self.shown, n_hints=n_hints + 1)
                st.button(worded("card.hint"), "lesson-hint", on_click=lesson_place.set_shown, args=(more,))
            if self.is_waiting:
                skipped = (lesson_place.SKIPPED, self._row)
                st.button(worded("card.skip"), "lesson-skip", on_click=lesson_place.set_answer, args=skipped)

    def _draw_ways_out(self) -> None:
        """The end of a lesson: her last picture stays; what she can do now, the next lesson, and the way to the list."""
        worded, place = self.say, self.place
        if can := place.lesson.can:
            href, copied = f"?{lesson_place.KEY}={quote(place.word)}", escape(worded("card.copied"))
            copy = f'<a class="copy-link" data-copied="{copied}" href="{href}">{escape(worded("card.copy-link"))}</a>'
            self._end.html(f'<div class="lesson-end"><p>{escape(worded("card.can", can=can))}</p><p>{copy}</p></div>')
        if (following := lesson_place.following(place)) is not None:
            words = worded("card.follows", title=literal(following.lesson.title))
            st.button(words, "lesson-next", type="primary", on_click=lesson_place.go_on, args=(place, following))
        st.button(worded("card.end"), "lesson-end", on_click=lesson_place.go_on, args=(place,))

    def _say(self, sentence: str) -> None:
        st.html(f'<p class="lesson-say">{_with_code(sentence)}</p>')

    def _element(self, piece: Piece) -> str:
        """Makes the HTML of a piece; what a lesson says is text alone."""
        text = escape(piece.text)
        if piece.style == "link":
            both = "&" if "?" in piece.target else "?"
            target = f"{piece.target}{both}{lesson_place.KEY}={quote(self.place.word)}"
            return f'<a href="{escape(target)}" target="_self">{text}</a>'
        if piece.style == "image":
            file, source = self.place.lesson.file.parent / piece.target, ""
            with suppress(OSError, TransformerVizError):
                data = base64.b64encode(read_bytes(file, _LARGEST_IMAGE)).decode("ascii")
                source = f"data:{mimetypes.guess_type(file.name)[0] or 'image/png'};base64,{data}"
            return f'<img alt="{text}" src="{source}">'
        tag = _TAGS.get(piece.style)
        return f"<{tag}>{text}</{tag}>" if tag else text


def _rules(fold: str, point: str, here: str) -> str:
    """The rules of a card's looks: of a folded one the beginning alone is seen. What the step speaks of is lit."""
    if fold == "f":
        return ":root { --sheet: 6.2rem; } .st-key-lesson-more { display: none; }"
    sheet = ":root { --sheet: 46dvh; } @media (min-width: 768px) { :root { --sheet: 36dvh; } }"
    opened = f"{sheet} .st-key-lesson-line {{ display: none; }}"
    if point in POINTS and here in POINTS[point].pages:
        # Names and selectors are the app's own.
        near, far = (f"color-mix(in srgb, var(--chosen) {share}%, transparent)" for share in (16, 26))
        halo = f"0 0 0 6px {near}, 0 0 22px 6px {far}"
        lit = f"outline: 2.5px solid var(--chosen); outline-offset: 3px; border-radius: 0.3rem; box-shadow: {halo};"
        opened += f" :is({POINTS[point].selector}) {{ {lit} }}"
    return opened


def _draw_masks(example: Example) -> None:
    """Draws all heads, without a word of what made their masks."""
    from transformer_viz.views.components import pictures

    spot = example.focus
    at = focus.Focus("lesson", spot.kind, spot.layer, spot.head, spot.row)
    trace = replace(hide_answer(example.trace, example.trace.n_steps), mistake="", edits=())
    for kind, call in pictures.mosaic_calls(trace, DisplayOptions(is_large=False, with_answer=False), at).items():
        chart.show(call(), f"{MASKS_KEY}-{kind}", say("{attention}: which cells are masked.", attention=kind_words(kind)))


# ---- the question


def _draw_form(asked: Question, unanswered: Answer, row: int | None, worded: Words) -> None:
    """Options or a box for a number, and the button.

    Args:
        asked: the question.
        unanswered: what the answer is of, without its words.
        row: where Explore goes once it is answered; None stays where it is.
        worded: the words of the lesson's language.
    """
    key = f"lesson-answer-{st.session_state[lesson_place.KEY]}-{unanswered}"
    looks: Any = {"label_visibility": "collapsed"}
    with st.form(key=f"{key}-form", border=False):
        if asked.number is not None:
            # Not a browser's box for numbers, which drops the comma of 0,24 without a word.
            # Nobody sees its label, which is read aloud as it is.
            typed = st.text_input(asked.text.replace("`", ""), max_chars=LONGEST_NUMBER, key=key, **looks)
            if typed.strip() and typed_number(typed) is None:
                st.html(f'<p class="lesson-say" role="alert">{escape(worded("card.no-number"))}</p>')
        elif asked.is_several:
            with st.container(horizontal=len(asked.options) > _MOST_BELOW):
                for number, option in enumerate(asked.options):
                    st.checkbox(literal(option), key=f"{key}-{number}", width="content")
        else:
            labels, options = [*map(literal, asked.options)], range(len(asked.options))
            looks |= {"horizontal": len(options) > _MOST_BELOW}
            st.radio(literal(asked.text), options, None, labels.__getitem__, key=key, **looks)
        arguments = (key, unanswered, row, len(asked.options) if asked.is_several else None)
        st.form_submit_button(worded("card.answer"), type="primary", on_click=_answer, args=arguments)


def _answer(key: str, unanswered: Answer, row: int | None, n_options: int | None) -> None:
    state = st.session_state
    if n_options is None:
        given = state.get(key)
        number = typed_number(given) if isinstance(given, str) else given
        words = None if number is None else f"{number:.6g}"
    else:
        words = "+".join(str(number) for number in range(n_options) if state.get(f"{key}-{number}")) or None
    if words is not None:
        lesson_place.set_answer(str(replace(unanswered, words=words)), row)


def _draw_judged(asked: Question, given: list[int] | float | None, because: str, worded: Words) -> None:
    """Draws whether it was right, what was said, what the model does, and why; of no answer where the question was skipped."""
    is_right = given is not None and asked.is_right(given)
    sentences = [] if given is None else [worded("card.said", said=_said(asked, given, worded))]
    sentences.append(worded("card.it", it=asked.it))
    judged = worded("card.skipped" if given is None else "card.right" if is_right else "card.wrong")
    blank = worded("common.blank")  # Chinese has none between sentences
    words = _with_code(blank.join(sentences)).replace(" %", "&nbsp;%")
    st.html(
        f'<div role="status"><p class="lesson-say"><b>{escape(judged)}</b>{blank}{words}</p>'
        f'<p class="lesson-say lesson-because">{_with_code(because)}</p></div>'
    )


def _read_words(asked: Question, words: str) -> list[int] | float | None:
    """Reads an answer; None where it is none to this question, as a link may have it."""
    if asked.number is None:
        return _numbers(asked, words) or None
    try:
        return number if math.isfinite(number := float(words)) else None
    except ValueError:
        return None


def _numbers(asked: Question, words: str) -> list[int]:
    """The answers that are named by their numbers, as `1+3`; none where one is none of this question's."""
    numbers = [int(part) for part in words.split("+") if part.isascii() and part.isdigit()]
    return numbers if all(number < len(asked.answers) for number in numbers) else []


def _look(unanswered: Answer, row: int | None, is_several: bool) -> None:
    """Gives what is flagged in the picture; for a callback."""
    if is_several and not lesson_place.flags():
        lesson_place.hear(f"lesson flag {st.session_state[_NONE]}")
    lesson_place.look(unanswered, row)


def _with_code(sentence: str) -> str:
    """Makes HTML of a sentence: what stands in backquotes is code; all else is text."""
    parts = sentence.split("`")
    return "".join(f"<code>{escape(part)}</code>" if place % 2 else escape(part) for place, part in enumerate(parts))


def _said(asked: Question, answer: list[int] | float, worded: Words) -> str:
    if isinstance(answer, int | float):
        return asked.figure(answer)
    # Some options are sentences.
    return worded.list([f"`{asked.answers[number].rstrip('.。')}`" for number in answer])
