"""The lessons as pages of the site: a card beside a live page, without a server.

Texts, questions, right answers and reasons are those of the program, made as the site is built, on each card's own run. What a
question asks about is not computed by the live page until it is answered.
"""

from typing import Any
from urllib.parse import urlencode

from transformer_viz.learn.covers import Cover, cover_of
from transformer_viz.learn.example_run import DEFAULT_MODEL, Example, example_of, measured
from transformer_viz.learn.lesson import LESSONS, Lesson, Step, read_lessons
from transformer_viz.learn.links import Link
from transformer_viz.learn.questions import Question, question
from transformer_viz.learn.words import words
from transformer_viz.trace.trace import Trace

LANGUAGES = ("en", "zh")
_OF_LIVE_PAGES = {"text", "checkpoint", "kind", "layer", "head", "step"}
"""What a link may name that a live page can show."""
_NOT_ON_LIVE_PAGES = {"decoding", "inside", "model", "settings", "tabs", "tree"}
"""Points of cards at what a live page does not have."""
_WORDS = (
    *("step", "answer", "right", "wrong", "skipped", "said", "it", "hint", "back", "next", "skip", "end", "can", "follows"),
    *("covered", "covered-masks", "covered-step", "no-number", "about", "begin"),
)
"""Of the card; see `questions.toml`."""


def lessons(language: str) -> list[Lesson]:
    """The shipped lessons in a language, in their order."""
    return read_lessons(LESSONS / language)[0]


def suffix(language: str) -> str:
    """What the names of pages in a language end in."""
    return "" if language == "en" else f"-{language}"


def live_page(model: str, language: str) -> str:
    """The name of a model's live page."""
    return f"{model}{suffix(language)}.html"


def models() -> list[str]:
    """The models of the cards that a live page can show, in the order in which they come."""
    steps = [(lesson, number) for lesson in lessons("en") for number in range(len(lesson.steps))]
    found = [place["model"] for lesson, number in steps if (place := _place(lesson, number)) is not None]
    return list(dict.fromkeys(found))


def lesson_data(lesson: Lesson, language: str) -> dict[str, Any]:
    """A lesson for its page, ready for JSON."""
    say = words(language)
    others = lessons(language)
    following = others[[other.name for other in others].index(lesson.name) + 1 :][:1]
    return {
        "title": lesson.title,
        "can": lesson.can,
        "list": f"lessons{suffix(language)}.html",
        "following": [{"title": one.title, "page": one.page_name(language)} for one in following],
        "blank": say("common.blank"),
        "comma": say("common.comma"),
        "words": {name: say.template(f"card.{name}") for name in _WORDS} | {"needs": say("site.needs"), "own": say("site.own")},
        "cards": [_card(lesson, number, step, language) for number, step in enumerate(lesson.steps)],
    }


def _card(lesson: Lesson, number: int, step: Step, language: str) -> dict[str, Any]:
    at, place = lesson.start_of(number), _place(lesson, number)
    assert at is not None
    card: dict[str, Any] = {
        "title": step.title,
        "text": [[[piece.style, piece.text] for piece in paragraph] for paragraph in step.text],
        "hints": step.hints,
        "place": place,
        "needsApp": place is None or step.point in _NOT_ON_LIVE_PAGES,
        "asksOwnWord": step.do is not None and step.do.verb == "text" and step.ask is not None,
    }
    if place is not None:
        place["page"] = live_page(place["model"], language)
    if step.ask is None:
        return card
    example = example_of(at.address, is_of_writing=step.ask.kind == "writes")
    assert example is not None
    trace = measured(example, step.ask)
    asked = question(trace, step.ask, example.focus, language)
    assert isinstance(asked, Question), f"{lesson.name} {number + 1}: {asked.why}"
    card["ask"] = {
        "text": asked.text,
        "options": asked.options,
        "right": sorted(asked.right),
        "isSeveral": asked.is_several,
        "number": asked.number,
        "tolerance": asked.tolerance,
        "isPercent": asked.is_percent,
        "it": asked.it,
        "because": step.ask.because or asked.why,
        "row": asked.spot.row + 1,
    }
    if place is not None:
        card["place"] = _with_cover(place, cover_of(asked, step.ask, trace), asked, example, trace)
    return card


def _place(lesson: Lesson, number: int) -> dict[str, Any] | None:
    """The live page of a card, and where on it the card is; None where no live page can show it."""
    at = lesson.start_of(number)
    if at is None or at.page != "explore" or not _OF_LIVE_PAGES.issuperset(at.values):
        return None
    example = example_of(at.address)
    assert example is not None
    # A card without a start goes on where the one before it led.
    row = _row_of(lesson.steps[number], at, example)
    return {"model": at.values.get("checkpoint", DEFAULT_MODEL), "open": _hash(example, example.focus, row)}


def _row_of(step: Step, at: Link, example: Example) -> int:
    if step.do is not None and step.do.verb == "step":
        # One goes there oneself.
        return max(1, int(step.do.value) - 1)
    if step.start is None and step.ask is not None and step.ask.row is not None:
        return step.ask.row
    return at.number("step") or example.focus.row + 1


def _hash(example: Example, spot: Any, step: int, **more: str) -> str:
    head = spot.head + 1 if isinstance(spot.head, int) else spot.head
    about = {"kind": spot.kind, "layer": spot.layer + 1, "head": head, "step": step, "text": example.trace.source}
    return urlencode({**about, **more})


def _with_cover(place: dict[str, Any], cover: Cover, asked: Question, example: Example, trace: Trace) -> dict[str, Any]:
    """The card's place before its question is answered, and after it."""
    spot = asked.spot
    # Of what is said of the whole run nothing is covered but which tokens are the right ones.
    is_whole = cover.step is None or cover.step >= trace.n_steps
    # Who was asked for a token is told that token: what comes after it is for a later card.
    until = {"most": str(spot.row + 1)} if asked.kind == "writes" and not is_whole else {}
    shown = {**place, "open": _hash(example, spot, spot.row + 1, **until)}
    if cover.kind is not None or cover.step == 0:
        of = "-masks" if cover.is_of_masks else "-step" if asked.kind == "writes" else ""
        return {**shown, "covered": f"covered{of}"}
    before = {"answer": "hidden"} if is_whole else {"most": str(cover.step)}
    return {**shown, "before": _hash(example, spot, spot.row + 1 if is_whole else cover.step or 1, **before)}
