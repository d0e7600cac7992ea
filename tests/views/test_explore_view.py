"""Every widget of the page through AppTest, on a tiny random checkpoint of its own."""

import base64
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.views.drawn import pictures
from transformer_viz import checkpoints
from transformer_viz.tracing.decode import decode
from transformer_viz.views.components.markdown import literal

ROOT = Path(__file__).resolve().parents[2]


def weights_drawn(at: AppTest) -> np.ndarray:
    z = pictures(at)[0]["data"][0]["z"]
    return np.frombuffer(base64.b64decode(z["bdata"]), dtype=z["dtype"]).reshape([int(n) for n in z["shape"].split(",")])


def said(at: AppTest) -> str:
    return " ".join(str(element.value) for element in [*at.error, *at.info, *at.warning]).replace("\\", "")


def test_the_page_opens_with_a_decoded_word(start: Callable[..., AppTest]) -> None:
    at = start()
    assert not at.exception
    assert at.text_input(key="text").value == "reversethis"
    titles = [chart["layout"].get("title", {}).get("text", "") for chart in pictures(at)]
    assert titles[1:4] == ["encoder self-attention", "decoder self-attention (grey: masked)", "cross-attention"]
    assert "Nothing about attention was trained" in " ".join(str(text.value) for text in at.text)


def test_the_masks_and_the_numbers_are_a_tab_away(start: Callable[..., AppTest]) -> None:
    at = start(text="abc", kind="decoder", layer="1", head="2")
    at.session_state["explore_tab"] = "Masks"
    at.run()
    titles = [chart["layout"].get("title", {}).get("text", "") for chart in pictures(at)]
    assert next(title for title in titles if "cells masked" in title).startswith("encoder self-attention: 0 of 25")
    at.session_state["explore_tab"], at.session_state["export_format"] = "Export", "table"
    at.run()
    assert not at.exception
    frame = at.dataframe[0].value
    assert set(frame.kind) == {"decoder"}
    assert set(frame.layer) == {1}
    assert set(frame["head"]) == {2}
    assert [set(frame["query"]), set(frame["key"])] == [{*range(1, 1 + frame["query"].nunique())}] * 2


def test_the_focus_chart_follows_the_boxes(start: Callable[..., AppTest], folder: Path) -> None:
    checkpoint = checkpoints.load_checkpoint(str(folder / "reverse"), "cpu")
    trace = decode(checkpoint, "abc")
    at = start(text="abc", step=str(len(trace.steps)))
    np.testing.assert_allclose(weights_drawn(at), trace.cross.weights[1, 2], atol=1e-6)
    at.selectbox(key="layer").set_value(0)
    at.selectbox(key="head").set_value("mean").run()
    np.testing.assert_allclose(weights_drawn(at), trace.cross.weights[0].mean(0), atol=1e-6)
    at.session_state["kind"] = "decoder"
    at.run()
    drawn, masked = weights_drawn(at), trace.decoder.mask
    np.testing.assert_allclose(drawn[~masked], trace.decoder.weights[0].mean(0)[~masked], atol=1e-6)
    assert not at.exception


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "The text is empty"),
        ("ab😀", "GRINNING FACE"),
        ("a" * 33, "33 characters"),
        ("na\u0308ive", "COMBINING DIAERESIS"),
        ("a\u202eb", "RIGHT-TO-LEFT OVERRIDE"),
        ("tab\there", "a tab"),
    ],
)
def test_bad_input_is_named_and_kept(start: Callable[..., AppTest], text: str, words: str) -> None:
    at = start()
    at.text_input(key="text").set_value(text).run()
    assert not at.exception
    assert words in said(at)
    assert at.text_input(key="text").value == text
    assert any("The last picture, of" in caption.value for caption in at.caption)


def test_beside_the_box_stands_how_much_of_what_the_model_may_read(start: Callable[..., AppTest]) -> None:
    at = start(text="hello")
    assert "5 of 32" in [caption.value for caption in at.caption]
    at.text_input(key="text").set_value("ab" * 17).run()
    assert not any(" of 32" in caption.value for caption in at.caption), "the error says it"
    assert at.text_input(key="text").value == "ab" * 17, "nothing is cut that somebody may want to shorten"


@pytest.mark.parametrize(
    ("page", "kind", "key"),
    [(None, "text_input", "text"), ("masks", "text_area", "sources"), ("compare", "text_input", "b_text")],
)
def test_no_more_is_kept_of_what_a_stranger_sends_than_the_control_holds(
    start: Callable[..., AppTest], page: str | None, kind: str, key: str
) -> None:
    at = start(page)
    getattr(at, kind)(key=key).set_value("é" * 20_000).run()
    assert not at.exception
    assert at.session_state[key] == "é" * 10_000


def test_an_example_helps_out_of_an_empty_page(start: Callable[..., AppTest]) -> None:
    at = start(text="")
    at.button(key="offer-1").click().run()
    assert at.text_input(key="text").value == "Mississippi 2026!"
    assert pictures(at)


@pytest.mark.parametrize("text", ["   ", "<b>x</b>", "$x^2$", "**a** :red[b]", "[a](http://b)", "</script>"])
def test_marks_are_letters(start: Callable[..., AppTest], text: str) -> None:
    at = start(text=text)
    assert not at.exception
    assert not said(at)
    ticks = pictures(at)[0]["layout"]["xaxis"]["ticktext"]
    assert len(ticks) == len(text) + 2
    assert not any("<" in tick or "$" in tick for tick in ticks)


def test_a_link_sets_everything(start: Callable[..., AppTest]) -> None:
    at = start(text="abc", kind="decoder", layer="2", head="max", step="2", explore_tab="Masks")
    state = at.session_state
    assert (state["text"], state["kind"], state["layer"], state["head"], state["step"]) == ("abc", "decoder", 1, "max", "2")
    assert not said(at)


def test_defaults_stay_out_of_the_link(start: Callable[..., AppTest]) -> None:
    at = start()
    # The bare address opens at the first step of a head with gradations, and a link of the last letter is not bare.
    assert dict(at.query_params) == {"step": "1", "head": "head 2"}
    assert "step" in start(text="abc").query_params
    at.text_input(key="text").set_value("abc").run()
    at.selectbox(key="head").set_value(0).run()
    assert at.query_params["text"] in ("abc", ["abc"])
    assert at.query_params["head"] in ("head 1", ["head 1"])


def test_a_damaged_checkpoint_is_reported_and_the_others_go_on(start: Callable[..., AppTest], own_folder: Path) -> None:
    (own_folder / "broken").mkdir()
    (own_folder / "broken" / "config.json").write_text("{", encoding="utf-8")
    at = start()
    assert not at.exception
    assert pictures(at)
    assert any("broken" in str(text.value) for text in at.text)
    assert at.selectbox(key="checkpoint").options == ["reverse", "a trace file …"]


def test_without_any_checkpoint_the_page_says_how_to_get_one(start: Callable[..., AppTest], own_folder: Path) -> None:
    (own_folder / "reverse" / "config.json").unlink()
    at = start()
    assert not at.exception
    assert "train --recipe reverse" in said(at)


def test_the_projector_shows_maps_only(start: Callable[..., AppTest]) -> None:
    at = start()
    at.toggle(key="projector").set_value(True).run()
    assert not at.exception
    assert len(pictures(at)) == 4
    assert pictures(at)[0]["layout"]["font"]["size"] > 13


def test_every_mark_of_markdown_is_escaped() -> None:
    typed = r"**a** $x$ :red[b] <b> `c` ~d~ #e |f| \g"
    shown = literal(typed)
    assert re.sub(r"\\(.)", r"\1", shown) == typed
    assert not re.search(r"(?<!\\)[*$\[\]<>`~#|:]", shown)


def test_code_is_sent_only_where_its_fold_is_open(start: Callable[..., AppTest]) -> None:
    """The browser loads what colours code as soon as there is code, and that takes as long as its first picture."""
    at = start()
    assert len(at.code) == 0
    assert "code_of_tab" not in at.query_params
    at.session_state["code_of_tab"] = True
    at.run()
    assert len(at.code) == 1
    assert at.query_params["code_of_tab"] == "true"
