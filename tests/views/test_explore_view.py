"""The first page: what it draws follows its boxes, and what helps where there is nothing to draw."""

import re

import numpy as np

from tests.views.drawn import said
from tests.views.viewer import array, content, enter, has_viewer, head, press, text, viewer, weights
from tests.views.widgets import link_of
from transformer_viz.tracing.decode import decode
from transformer_viz.views.components.markdown import APART, literal


def test_the_viewer_is_sent_every_weight_and_reason_and_where_it_begins(start, model):
    trace = decode(model, "abc")
    at = start(text="abc", step="2")
    sent = content(at)["kinds"]
    assert [*sent] == [*trace.kinds] and "decoder" in sent
    for kind, attention in trace.attentions.items():
        np.testing.assert_allclose(weights(at, kind), attention.weights, atol=1e-6)
        np.testing.assert_array_equal(array(sent[kind]["reasons"]) > 0, attention.mask)
    begins = viewer(at)["start"]
    assert (begins["kind"], begins["layer"], begins["head"], begins["step"]) == ("cross", 1, 2, 1)
    np.testing.assert_allclose(head(at), trace.cross.weights[1, 2], atol=1e-6)


def test_a_run_is_the_same_wherever_it_is_begun(start):
    first, other = start(text="abc"), start(text="abc", kind="decoder self-attention", head="head 3", step="2")
    assert viewer(first)["start"] != viewer(other)["start"]
    assert content(first) == content(other), "what is packed once serves every place"
    assert "focus" not in content(first)


def test_what_is_pressed_in_the_viewer_is_what_the_page_shows_and_its_link_says(start):
    at = start(text="abc", step="3")
    name, request = viewer(at)["content"], viewer(at)["request"]
    press(at, kind="decoder", layer=1, head="mean", step=1, pin=[1, None])
    state = at.session_state
    assert (state["kind"], state["layer"], state["head"], state["step"], state["pin"]) == ("decoder", 1, "mean", "2", "2")
    said = link_of(at)
    assert {key: said[key] for key in ("kind", "layer", "head", "step", "pin")} == {
        **{"kind": "decoder self-attention", "layer": "layer 2", "head": "mean of heads"},
        **{"step": "2", "pin": "2"},
    }
    # The same numbers, and nothing that would set what the browser shows.
    assert (viewer(at)["content"], viewer(at)["request"]) == (name, request)


def test_beside_the_box_stands_how_much_of_what_the_model_may_read(start):
    at = start(text="hello")
    assert "5 of 32" in [caption.value for caption in at.caption]
    enter(at, "ab" * 17)
    assert not any(" of 32" in caption.value for caption in at.caption), "the error says it"


def test_an_example_helps_out_of_an_empty_page(start):
    at = start(text="")
    at.button(key="offer-1").click().run()
    assert text(at) == "Mississippi 2026!" and has_viewer(at)


def test_defaults_stay_out_of_the_link(start):
    at = start()
    first = text(at)
    # The bare address opens at the first step of a head with gradations, and a link of the last letter is not bare.
    assert link_of(at) == {"step": "1", "head": "head 2"}
    assert viewer(at)["address"]["defaults"]["step"] is None
    at = start(text="abc")
    assert viewer(at)["address"]["defaults"]["step"] == at.session_state["first_step"]
    assert viewer(enter(at, first))["address"]["defaults"]["step"] is None, "nothing else would be left"


def test_without_any_checkpoint_the_page_says_how_to_get_one(start, own_folder):
    (own_folder / "reverse" / "config.json").unlink()
    assert "train --recipe reverse" in said(start())


def test_every_mark_of_markdown_is_escaped():
    typed = r"**a** $x$ :red[b] <b> `c` ~d~ #e |f| \g"
    shown = literal(typed).replace(APART, "")
    assert re.sub(r"\\(.)", r"\1", shown) == typed
    assert not re.search(r"(?<!\\)[*$\[\]<>`~#|:]", shown)


def test_code_is_sent_only_where_its_fold_is_open(start):
    """The browser loads what colours code as soon as there is code, and that takes as long as its first picture."""
    at = start()
    assert not at.code
    at.session_state["code_of_tab"] = True
    assert len(at.run().code) == 1
