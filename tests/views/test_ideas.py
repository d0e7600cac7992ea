"""The texts below the first question: their pictures are what their models do, and a press shows them."""

import gc

import numpy as np
import pytest

import transformer_viz as tv
from tests.views.viewer import enter, follow, text, viewer, way
from transformer_viz.views.components.ideas import IDEAS, Idea


@pytest.mark.parametrize("idea", IDEAS, ids=lambda idea: idea.model)
def test_the_picture_is_what_the_model_does(idea: Idea) -> None:
    trace = tv.decode(tv.load_checkpoint(idea.model, device="cpu"), idea.text)
    assert trace.source_tokens[1:-1] == idea.read and trace.output_tokens[:-1] == idea.written
    assert [None if key is None else key - 1 for key in trace.alignment] == [*idea.links, None]
    # The map that it opens with shows the same lines; once it is the comma before "dass".
    apart = trace.cross.head(*idea.head).argmax(axis=1)[:-1] - 1 - idea.links
    assert np.abs(apart).max() <= 1 and np.count_nonzero(apart) <= 1


def test_a_press_shows_it_from_its_first_step_and_the_first_one_plays(start, shipped) -> None:
    at = way(start(text="ab"), "idea german")
    shown, idea = viewer(at), IDEAS[0]
    assert text(at) == idea.text and at.session_state["checkpoint"] == idea.model
    assert shown["start"]["step"] == 0 and shown["parts"]["unfolds"] and shown["parts"]["plays"]
    later = viewer(enter(at, "ich lese"))
    assert later["start"]["step"] == 0 and later["parts"]["unfolds"] and not later["parts"]["plays"]
    # Nonsense is passed over, and so is a model that no idea is of.
    for name in ("idea 0", "idea copy", "idea"):
        assert text(way(at, name)) == "ich lese"


@pytest.mark.parametrize("word", ["banana", "planet", "x"])
def test_a_text_of_ones_own_opens_at_a_head_that_looks_at_the_letters_it_writes(start, shipped, word: str) -> None:
    """The head at which a first visitor begins looks elsewhere in many words, and the page says that it looks at the letter."""
    shown = viewer(enter(start(), word))["start"]
    trace = tv.decode(tv.load_checkpoint("reverse", device="cpu"), word)
    looked = trace.cross.head(shown["layer"], shown["head"]).argmax(axis=1)[:-1]
    assert [*looked] == [*range(len(word), 0, -1)]


def test_why_there_is_offered_where_it_can_be_told(start) -> None:
    def ways(**link: str) -> set[str]:
        return {name for one in viewer(start(text="ab", **link))["parts"]["ways"].values() for name in one}

    assert "why" in ways(layer="1", head="2")
    assert "why" not in ways(layer="1", head="mean of heads") and "why" not in ways(kind="encoder")


def test_with_all_controls_a_text_opens_as_it_ends(start) -> None:
    shown = viewer(enter(start(all_controls="true"), "hello"))
    assert shown["start"]["step"] > 0 and not shown["parts"]["plays"] and not shown["parts"]["unfolds"]


def test_a_text_of_ones_own_begins_for_whoever_came_by_a_link_and_the_link_itself_keeps_its_step(start) -> None:
    at = start(text="ab", step="2")
    opened = viewer(at)
    assert opened["start"]["step"] == 1 and not opened["parts"]["unfolds"] and not opened["parts"]["plays"]
    typed = viewer(enter(at, "hello"))
    assert typed["start"]["step"] == 0 and typed["parts"]["unfolds"] and typed["parts"]["plays"]


def test_in_a_lesson_a_text_opens_where_the_lesson_says(start) -> None:
    shown = viewer(enter(start(lesson="map.3"), "planet"))
    assert not shown["parts"]["plays"] and shown["start"]["step"] > 0


def test_of_a_card_about_one_row_later_ones_are_seen_when_they_are_reached(start) -> None:
    unfolds = {number: viewer(start(lesson=f"map.{number}"))["parts"]["unfolds"] for number in (2, 6, 8)}
    assert unfolds == {2: True, 6: False, 8: False}
    # What waits for an answer is covered; once it is given, the later cells are empty.
    assert viewer(start(lesson="map.3", lesson_answer="skip"))["parts"]["unfolds"]


def test_why_there_stays_at_the_step(start) -> None:
    at = start(text="reversethis", step="3")
    way(at, "why")
    assert viewer(at)["start"]["step"] == 2 and at.session_state["explore_tab"] == "Inside"


def test_while_one_types_nothing_plays_until_enter(start) -> None:
    at = start(text="ab")
    assert viewer(at)["follows"]
    shown = viewer(follow(at, "hel"))
    assert shown["start"]["step"] == 0 and shown["parts"]["unfolds"] and not shown["parts"]["plays"]
    assert viewer(enter(follow(at, "hello"), "hello"))["parts"]["plays"]


def test_with_many_visitors_and_in_a_lesson_a_text_waits_for_enter(start) -> None:
    assert not viewer(start(lesson="map.1"))["follows"]
    visits = [start(text="ab") for _ in range(9)]
    assert not viewer(visits[-1])["follows"]
    visits.clear()
    gc.collect()
    assert viewer(start(text="ab"))["follows"]
