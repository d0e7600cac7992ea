"""What lessons say of the app is so: their links open it as it says, their terms are in the glossary, their names are known."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.views.rooms import PAGES, rooms
from transformer_viz import app_folders
from transformer_viz.checkpoints import load_checkpoint
from transformer_viz.learn.lesson import LESSONS as LESSONS_OF_ALL
from transformer_viz.learn.lesson import Step, find_lessons, read_lesson
from transformer_viz.learn.links import PAGES as NAMES
from transformer_viz.learn.links import Link, read_link
from transformer_viz.learn.words import languages
from transformer_viz.training.replay import replay
from transformer_viz.views import glossary

Start = Callable[..., AppTest]
Visit = Callable[[AppTest, str | None], AppTest]
LESSONS = [read_lesson(file) for file in find_lessons()]
STEPS = {f"{lesson.name}.{number}": step for lesson in LESSONS for number, step in enumerate(lesson.steps, 1)}
LINKS = {step.start.address: step.start for step in STEPS.values() if step.start is not None}
# One link of each page and set of controls; `make test-all` opens the others, which differ in their values alone.
FIRST = {(link.page, *link.values): address for address, link in reversed(LINKS.items())}
OPENED = [address if address in FIRST.values() else pytest.param(address, marks=pytest.mark.slow) for address in LINKS]
NO_LESSON_NEEDS = ("train_", "code", "a_file", "b_file")
"""The form of a training, lines of code that are open, and files, which only their session has."""


@pytest.fixture
def shipped(folder: Path, only: Callable[[Path], Path]) -> Path:
    """The shipped checkpoints."""
    return only(app_folders.ROOT / "checkpoints")


@pytest.mark.parametrize("address", OPENED)
def test_a_link_opens_what_it_names(start: Start, shipped: Path, address: str) -> None:
    link = LINKS[address]
    at = start(None if link.page == "explore" else link.page, **link.values)
    assert not at.exception
    assert not [box.value for box in at.warning if "Not possible here" in box.value] and not at.error
    said = at.session_state
    for name in ("text", "sources", "moment", "edits", "step", "checkpoint"):
        assert name not in link.values or said[name] == link.values[name]
    if link.kind is not None and (layer := link.number("layer")):
        assert (said["kind"], said["layer"], said["head"]) == (link.kind, layer - 1, link.head)


def test_a_part_that_is_drawn_twice_opens_from_another_page_too(start: Start, shipped: Path, visit: Visit) -> None:
    """*On trial* decides how a head is taken away before its boxes and below them."""
    at = start("masks")
    asked = {"explore_tab": "Heads", "heads_part": "On trial", "question": "Is it needed?", "knock_out": "true"}
    for key, value in asked.items():
        at.query_params[key] = value
    visit(at, None)
    assert not at.exception and not at.error
    assert "In its place" in [group.label for group in at.segmented_control]


@pytest.mark.parametrize("file", [file for language in languages() for file in find_lessons(LESSONS_OF_ALL / language)])
def test_each_step_opens_by_its_name_alone_and_asks_its_question(start: Start, shipped: Path, file: Path) -> None:
    lesson, language = read_lesson(file), "" if file.parent.name == "en" else f"{file.parent.name}."
    for number, step in enumerate(lesson.steps):
        at_start = lesson.start_of(number)
        assert at_start is not None
        at = start(None if at_start.page == "explore" else at_start.page, lesson=f"{language}{lesson.name}.{number + 1}")
        assert not at.exception and not at.error and not at.warning
        drawn = {button.key for button in at.button}
        assert ("lesson-skip" in drawn) == (step.ask is not None) and "lesson-example" not in drawn
        if at_start.page == "explore" and "text" in at_start.values:
            assert at.session_state.text == at_start.values["text"]


@pytest.mark.parametrize("name", STEPS)
def test_a_term_is_in_the_glossary(name: str) -> None:
    step: Step = STEPS[name]
    assert {*step.terms} <= {*glossary.TERMS}


@pytest.mark.xdist_group("rooms")
@pytest.mark.parametrize("page", [page for page in PAGES if page != "learn"])
def test_a_lesson_may_name_every_control_of_a_page(start: Start, everything: Path, page: str | None) -> None:
    """Only the list of the lessons themselves is nowhere to go to."""
    name = page or "explore"
    assert name in NAMES
    there = {widget.key for room in rooms(start, page) for widget in room.widgets if widget.is_bound}
    Link(name, {key: "" for key in there if not key.startswith(NO_LESSON_NEEDS)})


def test_what_the_browser_shows_is_a_link_for_a_lesson(start: Start, shipped: Path) -> None:
    at = start("masks", sources="hello\nab", mistake="no-causal", sentence="2")
    link = read_link("/masks?" + "&".join(f"{key}={value}" for key, value in dict(at.query_params).items() if key != "sources"))
    assert link.number("sentence") == 2


def tick(at: AppTest, right: set[int]) -> AppTest:
    """Answers a question of which several options are right."""
    for place, box in enumerate(at.checkbox):
        box.set_value(place in right)
    return at.button(key=next(key for button in at.button if "Answer" in (key := str(button.key)))).click().run()


def said(at: AppTest) -> str:
    return " ".join(part.proto.body for part in at.get("html"))


def test_masks_ask_of_ones_own_sentences_and_of_each_change_anew(start: Start, shipped: Path) -> None:
    at = start("masks", lesson="future.6")
    at.text_area(key="sources").input("longest\nabc").run()
    assert "<code>abc</code>: Row 2 reads" in said(at) and "Sentence 2 of 2" not in "".join(one.value for one in at.markdown)
    # <start>, three letters and <end>; the rest of nine is padding.
    tick(at, {5, 6, 7, 8})
    assert "Right." in said(at) and "Sentence 2 of 2" in "".join(one.value for one in at.markdown)
    at.selectbox(key="mistake").set_value("wrong-axis").run()
    assert "Right." not in said(at) and "lesson-skip" in {button.key for button in at.button}
    at.selectbox(key="mistake").set_value("none").run()
    assert "Right." in said(at)


def test_train_asks_of_ones_own_text_at_the_moment_of_the_step(start: Start, shipped: Path) -> None:
    at = start("train", lesson="training.3")
    at.text_input(key="text").input("planet").run()
    moment = next(one for one in replay(load_checkpoint("reverse-small", "cpu"), "planet") if one.step == 141)
    assert "<code>planet</code>: " in said(at)
    (asked,) = (radio for radio in at.radio if str(radio.key).startswith("lesson-answer"))
    asked.set_value(asked.options.index(moment.written.output_tokens[2]))
    at.button(key=next(key for button in at.button if "Answer" in (key := str(button.key)))).click().run()
    assert "Right." in said(at)
    # Another moment is looked at, and nothing is asked anew.
    at.text_input(key="moment").input("227").run()
    assert "Right." in said(at) and at.session_state.moment == "227"
