"""The first page: what it draws follows its boxes, and what helps where there is nothing to draw."""

import re

import numpy as np
from streamlit.testing.v1 import AppTest

from tests.figures.sent import numbers
from tests.views.drawn import pictures, said
from transformer_viz.tracing.decode import decode
from transformer_viz.views.components.markdown import APART, literal


def weights_drawn(at: AppTest) -> np.ndarray:
    return numbers(pictures(at)[0]["data"][0]["z"])


def test_the_focus_chart_follows_the_boxes(start, model):
    trace = decode(model, "abc")
    at = start(text="abc", step=str(len(trace.steps)))
    np.testing.assert_allclose(weights_drawn(at), trace.cross.weights[1, 2], atol=1e-6)
    at.selectbox(key="layer").set_value(0)
    at.selectbox(key="head").set_value("mean").run()
    np.testing.assert_allclose(weights_drawn(at), trace.cross.weights[0].mean(0), atol=1e-6)
    at.session_state["kind"] = "decoder"
    at.run()
    drawn, masked = weights_drawn(at), trace.decoder.mask
    np.testing.assert_allclose(drawn[~masked], trace.decoder.weights[0].mean(0)[~masked], atol=1e-6)


def test_beside_the_box_stands_how_much_of_what_the_model_may_read(start):
    at = start(text="hello")
    assert "5 of 32" in [caption.value for caption in at.caption]
    at.text_input(key="text").set_value("ab" * 17).run()
    assert not any(" of 32" in caption.value for caption in at.caption), "the error says it"


def test_an_example_helps_out_of_an_empty_page(start):
    at = start(text="")
    at.button(key="offer-1").click().run()
    assert at.text_input(key="text").value == "Mississippi 2026!" and pictures(at)


def test_defaults_stay_out_of_the_link(start):
    at = start()
    # The bare address opens at the first step of a head with gradations, and a link of the last letter is not bare.
    assert dict(at.query_params) == {"step": "1", "head": "head 2"}
    assert "step" in start(text="abc").query_params


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
