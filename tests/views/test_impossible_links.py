"""What a link cannot mean here is said in one sentence, and the page opens all the same; what it cannot hold is said too."""

import pytest

from tests.views import viewer
from tests.views.drawn import box, finished, said
from tests.views.rooms import CASES, OPENINGS, rooms
from tests.views.widgets import link_of
from transformer_viz.views.components.viewer import OF_ADDRESS

WRONG = "é"
"""A value that no control but a text box can have."""
OF_OTHERS = {"moment", "position", "row"}
"""The words of the viewer that Explore has none of: those of a training, and of the scores of a row on Masks."""
FILM = {"learned": "true", "checkpoint": "reverse-small"}
WHAT_IF, HEADS = {"explore_tab": "What if"}, {"explore_tab": "Heads"}


@pytest.mark.xdist_group("rooms")
@pytest.mark.parametrize("page", [page for page in CASES if page != "learn"])
def test_every_control_of_a_room_is_said_in_one_sentence(start, everything, page):
    for room in rooms(start, page):
        if "opened" in room.settings:
            continue
        settings = {key: "true" if value is True else str(value) for key, value in room.settings.items()}
        there = {widget.key for widget in room.widgets if widget.is_bound and not widget.type.startswith("Text")}
        there |= {*OF_ADDRESS} - {"text", *OF_OTHERS} if page is None else set()
        wrong = dict.fromkeys(there - settings.keys() - {"all_controls"}, WRONG)
        at = finished(start(page, **{**OPENINGS.get(page, {}), **wrong, **settings}))
        assert said(at).count("Not possible here") == 1, settings
        assert [key for key in wrong if f"{key}={WRONG}" not in said(at)] == [], settings
        # What a first run corrects, a second one does not say anew, and nothing of it is left in the address.
        assert WRONG not in link_of(at.run()).values()


@pytest.mark.parametrize(
    ("page", "query", "key", "value"),
    [
        (None, {}, "pin", "99,99"),
        (None, {}, "keep", "all"),
        (None, {}, "step", "²"),
        (None, {}, "text", "a" * 10_001),
        (None, {"decoding": "beam"}, "alpha", "nan"),
        (None, {"decoding": "beam"}, "node", "99999"),
        (None, HEADS, "aligner", "9.1"),
        (None, HEADS, "heads_part", "By length"),
        (None, {}, "measure", "more"),
        (None, WHAT_IF, "what_if_step", "99"),
        (None, WHAT_IF, "what_if_prefix", "é"),
        (None, {**WHAT_IF, "what_if_how": "banned tokens"}, "what_if_ban", "<end>"),
        (None, {**WHAT_IF, "what_if_how": "a beginning of your own"}, "what_if_begin", "a" * 513),
        (None, {"explore_tab": "Inside"}, "explained", "é"),
        ("masks", {}, "sources", "a" * 10_001),
        ("masks", {}, "edits", "a" * 4_001),
        ("masks", {"masks_tab": "Scores to weights"}, "row", "99"),
        ("train", {}, "train_name", "a" * 101),
        ("train", {}, "train_warm_up", "nan"),
        ("train", FILM, "moment", "2"),
        ("train", FILM, "head", "mean"),
        ("survey", {}, "survey", "../../reverse"),
        ("compare", {}, "b_file", "gone"),
        ("compare", {}, "a_snapshot", "2"),
        ("compare", {"b_strategy": "beam"}, "b_beam", "99"),
        ("compare", {}, "b_edits", "a" * 4_001),
    ],
)
def test_what_a_person_could_write_is_said_too(start, everything, page, query, key, value):
    assert f"{key}={value}"[:40] in said(start(page, **{**OPENINGS.get(page, {}), **query, key: value}))


def test_what_is_possible_of_a_link_holds(start, everything):
    at = start(
        text="abc", checkpoint="gone", layer="99", kind="decoder", head="nine", step="2", explore_tab="Heads", tint="pink"
    )
    assert said(at).count("Not possible here") == 1
    assert (at.session_state["text"], at.session_state["kind"], at.session_state["step"]) == ("abc", "decoder", "2")
    assert at.session_state["explore_tab"] == "Heads"


def test_a_link_of_20_kb(start, everything):
    at = start("masks", sources="hello\nab", edits="cross:1-2, " * 2_000, layer="2", masks_tab="Scores to weights")
    assert said(at).count("Not possible here") == 1 and "edits=cross" in said(at)
    assert at.session_state["sources"] == "hello\nab" and at.session_state["layer"] == 1
    assert len("".join(link_of(at).values())) < 200


def test_what_was_seen_goes_when_the_person_goes_on(start, everything):
    at = start("masks", sources="hello\nab", sentence="9")
    assert "sentence=9" in said(at)
    at.run()
    assert "sentence=9" in said(at)
    box(at, "mistake").set_value("no-causal").run()
    assert "Not possible here" not in said(at)


def test_a_text_too_long_for_a_link_is_said_above_the_page(start, everything):
    at = start("masks", sources="hello")
    at.text_area(key="sources").set_value("hello\n" + "a" * 1_600).run()
    assert "Too long for it: sources (1,606 characters)" in said(at) and "sources" not in link_of(at)
    at.text_area(key="sources").set_value("hello\nabc").run()
    assert link_of(at)["sources"] == "hello\nabc"


def test_a_text_too_long_for_a_link_is_said_above_a_picture(start, folder):
    at = viewer.enter(start(text="hello"), "a" * 1_600)
    assert "Too long for it: text (1,600 characters)" in said(at) and "text" not in link_of(at)
    viewer.enter(at, "abc")
    assert "Too long" not in said(at) and link_of(at)["text"] == "abc"


def test_a_page_that_there_is_not_is_said_in_one_sentence_with_all_else(start):
    at = start(page="nosuch", layer="77")
    assert len(at.warning) == 1 and all(words in said(at) for words in ("page=nosuch", "Masks", "layer=77"))
    assert "page" not in link_of(at)


@pytest.mark.parametrize("query", [{"page": "nosuch"}, {"lesson": "wrong.1"}, {"decoding": "beam 3"}], ids=str)
def test_an_address_of_which_nothing_is_possible_opens_as_the_bare_one(start, query: dict[str, str]) -> None:
    bare, shown = (viewer.viewer(start(**words)) for words in ({}, query))
    assert shown["start"] == bare["start"] and shown["start"]["step"] == 0
