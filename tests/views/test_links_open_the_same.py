"""A link opens the same view: for every control of every page, and for all of them together."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.views import viewer
from tests.views.drawn import Start
from tests.views.rooms import CASES, OPENINGS, enter, rooms
from tests.views.widgets import change, controls, link_of, seen


def opens_the_same(start: Start, page: str | None, at: AppTest) -> None:
    """In a session that holds the same files."""
    held = getattr(at.session_state, "opened", {})
    first = at.session_state["open_name"] if page is None and held else None
    again = start(page, dict(sorted(held.items(), key=lambda item: item[0] != first)), **link_of(at))
    here, there = seen(at), seen(again)
    for what in here:
        assert there[what] == here[what], f"{page or 'explore'}, {link_of(at)}: {what} differ"


# These take the rest of the page with them: the projector hides the tabs, another task brings its own settings.
ALONE = {"projector", "train_task", "train_variant"}
# What these ask for takes long: `test_what_was_asked_for`.
ASKING = {"certificate", "effect", "gallery", "patching", "verdict", "knock_out", "curves"}


@pytest.mark.xdist_group("rooms")
@pytest.mark.parametrize("page", CASES)
def test_every_control(start, visit, everything, page):
    """One session goes from room to room and gives every control another value; then the link opens what is seen.

    At the end it goes to another page and back, where all is as it was.
    """
    at, done = enter(start, page, {}), set()
    for settings in (room.settings for room in rooms(start, page)):
        for key, value in settings.items():
            at.session_state[key] = value
        if "opened" in settings:
            at.session_state["opened_latest"] = next(iter(at.session_state["opened"]))
        at.run()
        n_before = len(done)
        for key in [control.key for control in controls(at) if control.is_bound and control.key not in done | ALONE | ASKING]:
            done.add(key)
            control = next((control for control in controls(at) if control.key == key), None)
            before = link_of(at)
            if control is None or not change(at, control):
                continue
            at.run()
            assert link_of(at) != before, f"{page or 'explore'}: the link says nothing of {key}"
        if len(done) > n_before:
            opens_the_same(start, page, at)
    left = link_of(at)
    assert link_of(visit(visit(at, "learn" if page is None else None), page)) == left


@pytest.mark.parametrize(
    ("page", "key"), [(None, "projector"), ("compare", "projector"), ("train", "train_task"), ("train", "train_variant")]
)
def test_what_takes_the_rest_of_the_page_with_it(start, everything, page, key):
    at = enter(start, page, {})
    change(at, next(control for control in controls(at) if control.key == key))
    at.run()
    assert key in link_of(at)
    opens_the_same(start, page, at)


def test_where_the_player_rests(start, everything):
    at = enter(start, "train", {"moment": 3, "learned": True, "text": "hello", "checkpoint": "reverse-small"})
    assert link_of(at)["moment"] == "3"
    opens_the_same(start, "train", at)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "decoder"}, {"kind": "decoder self-attention", "layer": "layer 2", "head": "head 3"}),
        ({"head": 0}, {"head": "head 1"}),
        ({"layer": 0, "head": "max"}, {"layer": "layer 1", "head": "max of heads"}),
        ({"step": 3}, {"step": "4"}),
        ({"step": 3, "pin": [2, None]}, {"step": "4", "pin": "3"}),
        ({"pin": [None, 1]}, {"pin": ",2"}),
        ({"lines": "all"}, {"lines": "all"}),
        ({"lines": "none"}, {"lines": "none"}),
        ({"measure": "value"}, {"measure": "value"}),
    ],
)
def test_what_the_picture_shows(start, everything, change, words):
    """The server knows what the browser writes, and a link of it opens the same picture."""
    at = start(**OPENINGS[None])
    before = link_of(at)
    viewer.press(at, **change)
    assert link_of(at) == before | words
    assert viewer.written(at).items() <= viewer.others(at).items()
    opens_the_same(start, None, at)


def test_another_page_and_back_leaves_what_is_not_to_be_seen(start, visit, everything):
    """The boxes of a tab that is not open."""
    at = start(**OPENINGS[None], explore_tab="Heads", trial_samples="20", decoding="sample", seed="7")
    at.session_state["explore_tab"] = "Masks"
    before = link_of(at.run())
    assert {"trial_samples", "seed"} <= before.keys()
    assert link_of(visit(visit(at, "learn"), None)) == before


def test_what_was_typed(start, everything):
    at = viewer.enter(start(**OPENINGS[None]), "a b&c=<d>")
    assert link_of(at)["text"] == viewer.text(at) == "a b&c=<d>"
    opens_the_same(start, None, at)


def test_what_was_asked_for(start, everything):
    at = start(text="ab", explore_tab="Heads", heads_part="On trial")
    before = seen(at)
    at.toggle(key="verdict").set_value(True).run(timeout=120)
    assert seen(at)["texts"] != before["texts"] and link_of(at)["verdict"] == "true"
    opens_the_same(start, None, at)
