"""The texts below the first question: their pictures are what their models do, and a press shows them."""

import pytest

import transformer_viz as tv
from tests.views.viewer import enter, text, viewer, way
from transformer_viz.views.components.ideas import IDEAS, Idea


@pytest.mark.parametrize("idea", IDEAS, ids=lambda idea: idea.model)
def test_the_picture_is_what_the_model_does(idea: Idea) -> None:
    trace = tv.decode(tv.load_checkpoint(idea.model, device="cpu"), idea.text)
    assert trace.source_tokens[1:-1] == idea.read and trace.output_tokens[:-1] == idea.written
    assert [None if key is None else key - 1 for key in trace.alignment] == [*idea.links, None]


def test_a_press_shows_it_from_its_first_step_and_the_first_one_plays(start) -> None:
    at = start(text="ab")
    # As if this newcomer had been asked the first question.
    at.session_state["own_text_is_new"] = True
    way(at, "idea reverse")
    shown, idea = viewer(at), IDEAS[0]
    assert text(at) == idea.text and at.session_state["checkpoint"] == idea.model
    assert shown["start"]["step"] == 0 and shown["parts"]["unfolds"] and shown["parts"]["plays"]
    later = viewer(enter(at, "other"))
    assert later["start"]["step"] == 0 and later["parts"]["unfolds"] and not later["parts"]["plays"]
    # Nonsense is passed over, and so is a model that this server does not have.
    for name in ("idea 0", "idea german", "idea"):
        assert text(way(at, name)) == "other"


@pytest.mark.parametrize("is_new", [True, False])
def test_with_all_controls_and_for_who_was_here_before_a_text_opens_as_it_ends(start, is_new: bool) -> None:
    at = start(all_controls=str(is_new).lower())
    if is_new:
        at.session_state["own_text_is_new"] = True
    shown = viewer(enter(at, "hello"))
    assert shown["start"]["step"] > 0 and not shown["parts"]["plays"] and not shown["parts"]["unfolds"]
