"""A deep model on a page: six layers at a time (here one, of a tiny model), in an order, beside an overview; the colours."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.figures.sent import numbers
from tests.needs import needs
from tests.tiny_models import GPT2
from tests.views.viewer import compared, content, press, viewer
from tests.views.widgets import link_of
from transformer_viz import decode, load_model
from transformer_viz.analysis.head_order import ordered, statistic
from transformer_viz.figures.figure_data import plain
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import deep_mosaic, screen

pytestmark = [needs("transformers"), pytest.mark.usefixtures("models")]
TEXT = "The house is small."


@pytest.fixture(autouse=True)
def _one_layer_is_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deep_mosaic, "LAYERS_A_PAGE", 1)


@pytest.fixture
def trace() -> Trace:
    found = decode(load_model(GPT2, "cpu"), TEXT)
    assert isinstance(found, Trace)
    return found


def tiles(at: AppTest) -> list[list[int]]:
    drawn = compared(at)["mosaics"]["decoder"] if viewer(at)["beside"] else content(at)["kinds"]["decoder"]["mosaic"]
    return drawn["layout"]["meta"]["tiles"]


def test_a_page_has_some_layers_and_follows_the_focus(start):
    at = start(checkpoint=GPT2, text=TEXT)
    assert tiles(at) == [[0, 0], [0, 1]]
    press(at, layer=1)
    assert tiles(at) == [[1, 0], [1, 1]]
    assert "heads_page" not in link_of(at), "the page of the focus needs no word"
    at.selectbox(key="heads_page").set_value(0).run()
    assert tiles(at) == [[0, 0], [0, 1]]
    assert (link_of(at)["heads_page"], at.session_state["layer"]) == ("layer 1", 1)
    again = start(checkpoint=GPT2, text=TEXT, layer="2", heads_page="1")
    assert tiles(again) == [[0, 0], [0, 1]]
    press(at, head=1)
    assert tiles(at) == [[1, 0], [1, 1]], "who chooses a head sees it"


def test_a_press_draws_no_small_maps_again(start, monkeypatch):
    drawn = []
    monkeypatch.setattr(deep_mosaic, "plain", lambda figure: drawn.append(figure) or plain(figure))
    at = start(checkpoint=GPT2, text="The house is tall.")
    n = len(drawn)
    press(at, head=1)
    press(at, step=2)
    assert len(drawn) == n > 0
    at.selectbox(key="heads_page").set_value(1).run()
    assert len(drawn) == n + 1 and tiles(at) == [[1, 0], [1, 1]]
    press(at, layer=0, head=0)
    assert tiles(at) == [[0, 0], [0, 1]]


def test_heads_in_another_order_and_the_overview_of_all(start, trace):
    at = start(checkpoint=GPT2, text=TEXT, head_order="first_key", overview_of="distance")
    assert not at.error and not at.warning
    order = [list(place) for place in ordered(trace, "decoder", "first_key")]
    assert tiles(at) in (order[:2], order[2:])
    assert [0, 0] in tiles(at), "the page of the focus"
    overview = viewer(at)["parts"]["overview"]
    np.testing.assert_allclose(numbers(overview["data"][0]["z"]), statistic(trace, "decoder", "distance"), rtol=1e-5)
    assert link_of(at)["head_order"] == "weight on the first token"
    assert "heads 1 to 2 by weight on the first token" in at.selectbox(key="heads_page").options


def test_with_the_answer_hidden_nothing_is_said_of_the_whole_run(start):
    at = start(checkpoint=GPT2, text=TEXT, hide_answer="true", head_order="first_key")
    assert viewer(at)["parts"]["overview"] is None
    assert tiles(at) == [[0, 0], [0, 1]]


def test_on_a_phone_the_colours_are_said_in_words(start, monkeypatch):
    def told(at: AppTest) -> str:
        return "".join(piece[1] for piece in content(at)["kinds"]["decoder"]["hint"])

    assert "colour = weight" not in told(start(checkpoint=GPT2, text=TEXT))
    monkeypatch.setattr(screen, "is_narrow", lambda: True)
    assert "colour = weight, 0 to 1" in told(start(checkpoint=GPT2, text=TEXT))


def test_compare_has_the_layers_around_the_one_that_is_shown_and_how_far_each_head_differs(start):
    texts = (TEXT, "The house is large.")
    sides = dict(zip(("text", "b_text"), texts, strict=True))
    at = start("compare", checkpoint=GPT2, b_checkpoint=GPT2, **sides, kind="decoder", layer="2", head="1")
    assert tiles(at) == [[1, 0], [1, 1]]
    runs = [decode(load_model(GPT2, "cpu"), text) for text in texts]
    a, b = (np.array(run.decoder.weights) for run in runs if isinstance(run, Trace))
    n = min(a.shape[-1], b.shape[-1])
    farthest = np.abs(a[..., :n, :n] - b[..., :n, :n]).max((-2, -1))
    overview = viewer(at)["parts"]["overview"]
    np.testing.assert_allclose(numbers(overview["data"][0]["z"]), farthest, atol=1e-6)
    press(at, layer=0)
    assert tiles(at) == [[0, 0], [0, 1]]
