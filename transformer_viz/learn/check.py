"""Checks lessons: whether links open, what is pointed at is there, questions have answers, and what is claimed is so."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from transformer_viz.errors import LessonError, TransformerVizError, join_names
from transformer_viz.learn.covers import check_cover
from transformer_viz.learn.example_run import example_of, measured
from transformer_viz.learn.facts import claim_fault
from transformer_viz.learn.lesson import Lesson, Step, read_lesson
from transformer_viz.learn.points import POINTS
from transformer_viz.learn.questions import NotAsked, question, spot_of
from transformer_viz.learn.words import languages
from transformer_viz.untrusted_files import is_file, list_folder

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z]{2,8})?")
"""The name of a folder of lessons in one language."""


@dataclass
class Findings:
    """The faults of one lesson.

    Attributes:
        file: of the lesson.
        faults: a sentence each; none of a good one.
        n_steps: of the lesson, where it could be read.
        n_questions: that have an answer on their example.
    """

    file: Path
    faults: list[str] = field(default_factory=list)
    n_steps: int = 0
    n_questions: int = 0


def check_lesson(file: Path) -> Findings:
    """Reads a lesson, makes the run of each of its links, and compares its questions and claims with these.

    Of folders with the names of languages, `en` beside `zh`, files of one name are one lesson.
    """
    findings = Findings(file)
    try:
        lesson = read_lesson(file)
    except LessonError as error:
        findings.faults.append(str(error))
        return findings
    findings.n_steps = len(lesson.steps)
    for number, step in enumerate(lesson.steps):
        try:
            _check_step(lesson, number, step)
            findings.n_questions += step.ask is not None
            findings.faults += [f"step {number + 1}: {fault}" for fault in _false_claims(lesson, number, step)]
        except TransformerVizError as error:
            findings.faults.append(f"step {number + 1}: {error}")
    if all(step.ask is None for step in lesson.steps):
        findings.faults.append("it asks nothing; at least one step needs an ask")
    findings.faults += _differences(lesson)
    return findings


def _check_step(lesson: Lesson, number: int, step: Step) -> None:
    at = lesson.start_of(number)
    if at is None:
        raise LessonError('it does not say where it begins; give the first step a start, such as start = "/?text=hello"')
    if step.point and at.page not in POINTS[step.point].pages:
        pages = join_names(POINTS[step.point].pages)
        raise LessonError(f"point={step.point!r} is not on the page {at.page}; it is on {pages}")
    for address in (at.address, *(piece.target for part in step.text for piece in part if piece.style == "link")):
        example_of(address)
    if (ask := step.ask) is None:
        return
    example = example_of(at.address, is_of_writing=ask.kind == "writes")
    if example is None:
        raise LessonError(f"the page {at.page} shows no run to ask about; let the step start on another page")
    folder = lesson.file.absolute().parent.name
    check_cover(ask, spot_of(ask, example.focus).row)
    made = question(measured(example, ask), ask, example.focus, folder if folder in languages() else "en")
    if isinstance(made, NotAsked):
        raise LessonError(f"its question has no answer on the example. {made.why}")


def _false_claims(lesson: Lesson, number: int, step: Step) -> Iterator[str]:
    at = lesson.start_of(number)
    assert at is not None
    for claim in step.claims:
        if (fault := claim_fault(claim, at)) is not None:
            yield fault


def _differences(lesson: Lesson) -> Iterator[str]:
    """Compares a lesson with the same one in another language."""
    mine = lesson.file.absolute().parent
    for folder in list_folder(mine.parent):
        file = folder / lesson.file.name
        if folder == mine or not all(map(_LANGUAGE.fullmatch, (mine.name, folder.name))) or not is_file(file):
            continue
        try:
            other = read_lesson(file)
        except LessonError:  # is said where that file is checked
            continue
        if len(lesson.steps) != len(other.steps):
            yield f"it has {len(lesson.steps)} steps, and {folder.name}/{file.name} has {len(other.steps)}"
            continue
        for number, (step, its) in enumerate(zip(map(_wordless, lesson.steps), map(_wordless, other.steps), strict=True), 1):
            for name in (part.name for part in fields(Step) if getattr(step, part.name) != getattr(its, part.name)):
                yield f"step {number}: {name} differs from that of {folder.name}/{file.name}"


def _wordless(step: Step) -> Step:
    """The parts of a step that are alike in every language; of its hints their number."""
    ask = None if step.ask is None else replace(step.ask, words="", because="")
    return replace(step, title="", text=(), ask=ask, hints=("",) * len(step.hints))
