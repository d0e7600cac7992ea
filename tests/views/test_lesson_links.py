"""What lessons say of the app is so: their links open it as it says, their terms are in the glossary, their names are known."""

import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.needs import slow
from tests.views.drawn import box
from tests.views.rooms import CASES, rooms
from tests.views.viewer import enter, press, viewer, way
from transformer_viz.checkpoints import load_checkpoint
from transformer_viz.learn.lesson import LESSONS, find_lessons, read_lesson
from transformer_viz.learn.links import PAGES as NAMES
from transformer_viz.learn.links import Link
from transformer_viz.training.replay import trace_training
from transformer_viz.views import glossary

NO_LESSON_NEEDS = ("train_", "code", "a_file", "b_file")
"""The form of a training, lines of code that are open, and files, which only their session has."""


STARTS = [step.start for file in find_lessons() for step in read_lesson(file).steps if step.start is not None]
LINKS = {link.address: link for link in STARTS}
# One link of each page and set of controls; `make test-all` opens the others, which differ in their values alone.
FIRST = {(link.page, *link.values): address for address, link in reversed(LINKS.items())}
OPENED = [address if address in FIRST.values() else pytest.param(address, marks=pytest.mark.slow) for address in LINKS]


@pytest.mark.parametrize("address", OPENED)
def test_a_link_opens_what_it_names(start, shipped, address):
    link = LINKS[address]
    at = start(None if link.page == "explore" else link.page, **link.values)
    assert "Not possible here" not in "".join(box.value for box in at.warning) and not at.error
    set_to = at.session_state
    for name in ("text", "sources", "moment", "edits", "step", "checkpoint"):
        assert name not in link.values or str(set_to[name]) == link.values[name]
    if link.kind is not None and (layer := link.number("layer")):
        assert (set_to["kind"], set_to["layer"], set_to["head"]) == (link.kind, layer - 1, link.head)


@pytest.mark.parametrize("file", [*map(slow, find_lessons()[1:]), find_lessons()[0], slow(find_lessons(LESSONS / "zh")[0])])
def test_each_step_opens_by_its_name_alone_and_asks_its_question(start, shipped, file):
    """Of other languages one lesson: `lessons --check` says that all have the same steps."""
    lesson, language = read_lesson(file), "" if file.parent.name == "en" else f"{file.parent.name}."
    for number, step in enumerate(lesson.steps):
        assert {*step.terms} <= {*glossary.TERMS} or language
        link = lesson.start_of(number)
        assert link is not None
        at = start(None if link.page == "explore" else link.page, lesson=f"{language}{lesson.name}.{number + 1}")
        assert not at.error and not at.warning
        drawn = {button.key for button in at.button}
        assert ("lesson-skip" in drawn) == (step.ask is not None) and "lesson-example" not in drawn
        if link.page == "explore" and "text" in link.values:
            assert at.session_state.text == link.values["text"]


def test_a_part_that_is_drawn_twice_opens_from_another_page_too(start, shipped, visit):
    """*On trial* decides how a head is taken away before its boxes and below them."""
    asked = {"explore_tab": "Heads", "heads_part": "On trial", "question": "Is it needed?", "knock_out": "true"}
    at = visit(visit(start(**asked), "masks"), None)
    assert not at.error
    assert "In its place" in [group.label for group in at.segmented_control]


@pytest.mark.xdist_group("rooms")
@pytest.mark.parametrize("page", [page for page in CASES if page != "learn"])
def test_a_lesson_may_name_every_control_of_a_page(start, everything, page):
    """Only the list of the lessons themselves is nowhere to go to."""
    name = page or "explore"
    assert name in NAMES
    there = {widget.key for room in rooms(start, page) for widget in room.widgets if widget.is_bound}
    Link(name, {key: "" for key in there if not key.startswith(NO_LESSON_NEEDS)})


def tick(at: AppTest, right: set[int]) -> AppTest:
    """Answers a question of which several options are right."""
    for place, tick_box in enumerate(at.checkbox):
        tick_box.set_value(place in right)
    return at.button(key=next(key for button in at.button if "Answer" in (key := str(button.key)))).click().run()


def said(at: AppTest) -> str:
    return " ".join(part.proto.body for part in at.get("html"))


def answered(at: AppTest, typed: str) -> str:
    (box,) = (box for box in at.text_input if str(box.key).startswith("lesson-answer"))
    box.set_value(typed)
    at.button(key=next(key for button in at.button if "Answer" in (key := str(button.key)))).click().run()
    return said(at)


@pytest.mark.parametrize("typed", ["0.24", "0,24", "．24", "０．２４", "24 %", "24%"])
def test_a_number_is_read_as_the_learner_writes_it(start, shipped, typed):
    """Row 5 of lesson 1 gives 0.24 to its neighbour."""
    at = start(lesson="map.4")
    assert "Right." in answered(at, typed) and "You: 0.24. It: <code>0.24</code>." in said(at)


def asked(at: AppTest) -> dict[str, Any]:
    """What the picture was told of the question."""
    return viewer(at)["parts"]["asked"]


@pytest.mark.parametrize("by", ["the card", "the picture"])
def test_a_flag_in_the_picture_is_the_answer_and_stays(start, shipped, by):
    at = start(lesson="map.3")
    assert at.button(key="lesson-look").disabled and not asked(at)["isOpen"] and asked(at)["isOfSource"]
    for nonsense in ("lesson flag 99", "lesson flag x", "lesson look", "look 1"):
        way(at, nonsense)
        assert (
            at.button(key="lesson-look").disabled
            and "Your flag" not in said(at)
            and "lesson-skip" in {one.key for one in at.button}
        )
    number = asked(at)["columns"][11]
    way(at, f"lesson flag {number}")
    assert asked(at)["flags"] == [11] and "Your flag: <code>12·s</code>." in said(at)
    if by == "the card":
        at.button(key="lesson-look").click().run()
    else:
        way(at, f"lesson look {number}")
    assert "Not so." in said(at) and "You: <code>12·s</code>. It: <code>10·h</code> 91&nbsp;%." in said(at)
    asks = read_lesson(find_lessons()[0]).steps[2].ask
    assert asks is not None and asks.because.replace("`h`", "<code>h</code>") in said(at)
    assert (asked(at)["isOpen"], asked(at)["flags"], asked(at)["row"]) == (True, [11], 2)
    # Of another text the run itself says why, since the lesson's words are of its own.
    enter(at, "planet")
    way(at, f"lesson look {asked(at)['columns'][0]}")
    assert "The largest weights of row 3" in said(at) and "at what it is about to write" not in said(at)


def test_what_is_painted_is_the_answer_and_nothing_painted_is_one_too(start, shipped):
    at = start(lesson="future.1")
    assert asked(at)["isSeveral"] and not asked(at)["isOfSource"]
    way(at, "lesson flag 3+4+5")
    assert "Painted: <code>4·?</code>, <code>5·?</code>, <code>6·?</code>." in said(at)
    at.button(key="lesson-look").click().run()
    assert "Right." in said(at) and asked(at)["flags"] == [3, 4, 5]
    at = start(lesson="future.3")
    at.button(key="lesson-look").click().run()
    assert "Right. You: <code>none of them</code>." in re.sub(r"</?b>", "", said(at))


def test_the_end_of_a_lesson_says_what_one_can_do_and_leads_on(start, shipped):
    at = start(lesson="map.9")
    assert "You can" not in said(at)
    at.button(key="lesson-skip").click().run()
    assert f"You can: {read_lesson(find_lessons()[0]).can}." in said(at) and "copy-link" in said(at)
    assert at.button(key="lesson-next").label == "Next: Reading, writing, looking across ›"
    at.button(key="lesson-next").click().run()
    assert at.session_state.lesson == "three-kinds.1"


def test_what_is_no_number_is_asked_again_and_not_judged(start, shipped):
    at = start(lesson="map.4")
    words = answered(at, "a quarter")
    assert "This is no number" in words and "Not so." not in words and "lesson-skip" in {button.key for button in at.button}
    assert "Right." in answered(at, "0,24") and "This is no number" not in said(at)


def test_masks_ask_of_ones_own_sentences_and_of_each_change_anew(start, shipped):
    at = start("masks", lesson="future.6")
    at.text_area(key="sources").input("longest\nabc").run()
    assert "<code>abc</code>: Row 2 is" in said(at) and "Sentence 2 of 2" not in "".join(one.value for one in at.markdown)
    # <start>, three letters and <end>; the rest of nine is padding.
    tick(at, {5, 6, 7, 8})
    assert "Right." in said(at) and "Sentence 2 of 2" in "".join(one.value for one in at.markdown)
    box(at, "mistake").set_value("wrong-axis").run()
    assert "Right." not in said(at) and "lesson-skip" in {button.key for button in at.button}
    box(at, "mistake").set_value("none").run()
    assert "Right." in said(at)


def test_a_text_that_cannot_be_read_does_nothing_that_a_step_asks_for(start):
    at = start(None, lesson="map.7")
    assert "Done" not in said(at)
    enter(at, "北京大学生")
    assert at.error and "Done" not in said(at)
    enter(at, "planet")
    assert not at.error and "Done" in said(at)


def test_train_asks_of_ones_own_text_at_the_moment_of_the_step(start, shipped):
    at = start("train", lesson="training.3")
    at.text_input(key="text").input("planet").run()
    moment = next(one for one in trace_training(load_checkpoint("reverse-small", "cpu"), "planet") if one.step == 141)
    assert "<code>planet</code>: " in said(at)
    (asked,) = (radio for radio in at.radio if str(radio.key).startswith("lesson-answer"))
    asked.set_value(asked.options.index(moment.written.output_tokens[2]))
    at.button(key=next(key for button in at.button if "Answer" in (key := str(button.key)))).click().run()
    assert "Right." in said(at)
    # Another moment is looked at, and nothing is asked anew.
    press(at, moment=227)
    assert "Right." in said(at) and at.session_state.moment == 227
