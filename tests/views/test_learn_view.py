"""The page Learn: what it lists, and a teacher's own lessons."""

import re
import shutil
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.views.viewer import press, viewer
from transformer_viz import app_folders
from transformer_viz.learn.lesson import LEVELS, find_lessons, read_lessons
from transformer_viz.views.state import lesson_place


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A teacher's folder."""
    (tmp_path / "own").mkdir()
    monkeypatch.setenv(app_folders.LESSONS_VARIABLE, str(tmp_path / "own"))
    return tmp_path / "own"


def listed(at: AppTest) -> list[str]:
    return [key.removeprefix("open-") for button in at.button if (key := str(button.key)).startswith("open-")]


def test_shipped_lessons_are_listed_in_their_order(start):
    for language in ("en", "zh"):
        at = start("learn", lesson_language={"en": "English", "zh": "中文"}[language])
        assert not at.warning
        assert listed(at) == [lesson.name for lesson in read_lessons(find_lessons()[0].parents[1] / language)[0]]


def test_each_shipped_lesson_has_a_picture_in_the_order_of_levels(start, shipped):
    at = start("learn")
    drawn = "".join(one.proto.body for one in at.get("html"))
    assert drawn.count("data:image/svg+xml;base64,") == len(read_lessons()[0]) == 8
    levels = [lesson.level for lesson in read_lessons()[0]]
    assert levels == sorted(levels, key=LEVELS.index)


def test_a_teachers_own_come_after_them_and_are_read_anew(start, own):
    first = find_lessons()[0]
    at = start("learn")
    shipped = listed(at)
    shutil.copy(first, own / "01-mine.md")
    shutil.copy(first, own / first.name)
    (own / "02-broken.md").write_text("<script>alert(1)</script>")
    at.run()
    assert listed(at) == [*shipped, "mine"]
    broken, doubled = (warning.value.replace("\\", "") for warning in at.warning)
    assert broken.startswith("02-broken.md: ") and "script" not in broken
    assert doubled.startswith(first.name) and "a lesson of the app has this name" in doubled
    at.button(key="open-mine").click().run()
    assert at.session_state.lesson == "mine.1"


def test_what_the_browser_remembers_is_listed_and_can_be_forgotten(start, monkeypatch):
    """It may have been written by anybody."""
    kept = "map.5~number.0~nowhere.3~<b>.1~future.zz~beam.ffffffffff~0.1"
    monkeypatch.setattr(type(st.context), "cookies", {lesson_place.COOKIE: kept})
    at = start("learn")

    def done() -> list[str]:
        found = re.findall(r'aria-label="Done: ([^"]*)"', "".join(one.proto.body for one in at.get("html")))
        return [one for one in found if not one.startswith("0 ")]

    assert done() == ["2 / 9"]
    assert [button.label for button in at.button if button.key == "open-map"] == ["Continue at card 2"]
    at.button(key="forget-lessons").click().run()
    assert not done()
    assert {button.label for button in at.button if str(button.key).startswith("open-")} == {"Begin"}


def test_whoever_begins_a_lesson_is_not_asked_the_first_question_again(start):
    at = start("explore")
    # As at a bare address: this browser has put the question away.
    at.session_state["first_question"] = None
    at.session_state[lesson_place.KEY] = "map.1"
    at.run()
    assert "first_question" not in at.session_state


def test_whoever_goes_on_and_back_in_one_message_has_put_the_first_question_away(start):
    """The browser tells its newest state alone: two presses that follow each other fast may end where they began."""
    at = start("")
    at.session_state["first_question"] = None
    assert viewer(at.run())["parts"]["isAsked"]
    assert viewer(at.run())["parts"]["isAsked"], "nothing was pressed"
    assert "isAsked" not in viewer(press(at))["parts"]
    assert "first_question" not in at.session_state
