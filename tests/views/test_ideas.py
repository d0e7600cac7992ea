"""The texts below the first question: their pictures are what their models do, and a press shows them."""

import pytest

import transformer_viz as tv
from tests.views.viewer import viewer
from transformer_viz.views.components.ideas import IDEAS, Idea


@pytest.mark.parametrize("idea", IDEAS, ids=lambda idea: idea.model)
def test_the_picture_is_what_the_model_does(idea: Idea) -> None:
    trace = tv.decode(tv.load_checkpoint(idea.model, device="cpu"), idea.text)
    assert trace.source_tokens[1:-1] == idea.read and trace.output_tokens[:-1] == idea.written
    assert [None if key is None else key - 1 for key in trace.alignment] == [*idea.links, None]


def test_a_bare_address_offers_them_and_no_other_one_does(start) -> None:
    assert [one["title"] for one in viewer(start())["parts"]["ideas"]] == [idea.title for idea in IDEAS]
    assert "ideas" not in viewer(start(text="hello"))["parts"]
