"""Search and What if through AppTest."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.views.drawn import pictures, table_of
from transformer_viz import decode, load_checkpoint
from transformer_viz.text_display import display_token
from transformer_viz.views.components.markdown import literal

Start = Callable[..., AppTest]


def said(at: AppTest) -> str:
    kinds = [*at.error, *at.info, *at.warning, *at.markdown, *at.caption]
    return " ".join(str(element.value) for element in kinds).replace("\\", "")


def tree(at: AppTest) -> dict[str, Any]:
    specs = pictures(at)
    return next(spec for spec in specs if any(trace.get("name") == "pruned" for trace in spec["data"]))


def tab(at: AppTest, name: str) -> AppTest:
    at.session_state["explore_tab"] = name
    return at.run()


def test_the_tree_the_table_and_the_best_hypothesis(start: Start, folder) -> None:
    at = start(decoding="beam", text="abc", beam="3")
    assert not at.exception
    trace = decode(load_checkpoint(str(folder / "reverse"), "cpu"), "abc", strategy="beam", beam_size=3)
    assert trace.search is not None
    points = [trace_ for trace_ in tree(at)["data"] if "customdata" in trace_]
    numbers = sorted(number for points_ in points for number in points_["customdata"])
    assert numbers == list(range(len(trace.search.nodes)))
    table = table_of(at, "rank")
    assert list(table["text"]) == [trace.search.nodes[n].text or "(empty)" for n in trace.search.best]
    assert list(table["log p"]) == [trace.search.nodes[n].total for n in trace.search.best]
    assert list(at.session_state["hypotheses"]["selection"]["rows"]) == [0]
    assert f"The hypothesis {trace.text}" in said(at).replace("*", "")


def test_a_node_that_is_not_finished_has_a_row_too(start: Start, folder) -> None:
    trace = decode(load_checkpoint(str(folder / "reverse"), "cpu"), "abc", strategy="beam", beam_size=4)
    search = trace.search
    assert search is not None
    other = next(number for number in range(1, len(search.nodes)) if number not in search.best)
    at = start(decoding="beam", text="abc", beam="4", node=str(other + 1))
    assert not at.exception
    table = table_of(at, "rank")
    assert list(table["log p"]) == [search.nodes[number].total for number in (*search.best, other)]
    assert list(at.session_state["hypotheses"]["selection"]["rows"]) == [len(search.best)]
    last = table.iloc[-1]
    assert (last["rank"], str(last["score"])) == ("–", "nan")
    assert f"The hypothesis {last['text']}" in said(at).replace("*", "")


def test_beam_settings_are_in_the_link_and_impossible_ones_are_said(start: Start) -> None:
    at = start(decoding="beam", text="abc", beam="7", alpha="1.5", stop="never")
    assert (at.number_input(key="beam").value, at.number_input(key="alpha").value) == (7, 1.5)
    assert (at.query_params["beam"], at.query_params["alpha"], at.query_params["stop"]) == ("7", "1.5", "at the limit")
    at = start(decoding="beam", text="abc", beam="1000", alpha="much", stop="soon", node="99999")
    for words in ("beam=1000", "alpha=much", "stop=soon", "node=99999"):
        assert words in said(at)


def test_bad_text_is_said_and_kept(start: Start) -> None:
    at = start(decoding="beam", text="🙂")
    assert "Character 1 is" in said(at)
    assert at.text_input(key="text").value == "🙂"


def test_a_wide_beam_opens(start: Start) -> None:
    at = start(decoding="beam", text="abc", beam="64")
    assert not at.exception
    assert len(table_of(at, "rank")) == 64


def test_markup_is_text_on_the_tree_too(start: Start) -> None:
    at = start(decoding="beam", text="<b>$x$</b> **a**", beam="2")
    assert not at.exception
    texts = json.dumps([trace.get("text") for trace in tree(at)["data"]])
    assert "<start>" not in texts


def test_another_token_and_undo(start: Start, folder) -> None:
    at = tab(start(text="abc"), "What if")
    at.number_input(key="what_if_step").set_value(2).run()
    at.selectbox(key="what_if_token").set_value("Q").run()
    assert not at.exception
    checkpoint = load_checkpoint(str(folder / "reverse"), "cpu")
    first = decode(checkpoint, "abc").output_tokens[0]
    other = decode(checkpoint, "abc", prefix=[first, "Q"])
    assert other.text.replace("\\", "") in said(at)
    assert "They diverge at step 2" in said(at)
    assert json.loads(at.query_params["what_if_prefix"]) == [first, "Q"]
    box, was = at.selectbox(key="what_if_token"), decode(checkpoint, "abc").output_tokens[1]
    assert (box.value, box.label) == ("Q", f"instead of {literal(display_token(was))}")
    assert "the pictures above show it" in said(at)
    # The next change is one of the changed run.
    at.number_input(key="what_if_step").set_value(3).run()
    at.selectbox(key="what_if_token").set_value("Z").run()
    assert decode(checkpoint, "abc", prefix=[first, "Q", "Z"]).text.replace("\\", "") in said(at)
    at.selectbox(key="what_if_token").set_value("").run()
    assert json.loads(at.query_params["what_if_prefix"]) == [first, "Q"]
    at.button(key="what-if-undo").click().run()
    assert "what_if_prefix" not in at.query_params
    assert at.selectbox(key="what_if_token").value == ""
    assert "They diverge" not in said(at)


def test_a_beginning_of_ones_own(start: Start, folder) -> None:
    at = start(text="abc", explore_tab="What if", what_if_how="a beginning of your own", what_if_begin="xy")
    other = decode(load_checkpoint(str(folder / "reverse"), "cpu"), "abc", prefix=["x", "y"])
    assert other.text.replace("\\", "") in said(at)
    assert at.query_params["what_if_begin"] == "xy"
    at.text_input(key="what_if_begin").set_value("x" * 33).run()
    assert "The text has 33 characters" in said(at)
    assert not at.exception


def test_banned_tokens(start: Start, folder) -> None:
    at = start(text="abc", explore_tab="What if", what_if_how="banned tokens")
    at.multiselect(key="what_if_ban").set_value(["a", "b"]).run()
    assert at.multiselect(key="what_if_ban").value == ["a", "b"]
    other = decode(load_checkpoint(str(folder / "reverse"), "cpu"), "abc", ban=["a", "b"])
    assert other.text.replace("\\", "") in said(at)


def test_a_target_of_ones_own_and_a_bad_one(start: Start) -> None:
    at = start(text="abc", explore_tab="What if", what_if_how="a target of your own", what_if_target="xyz")
    assert not at.exception
    assert "xyz" in said(at)
    assert at.query_params["what_if_target"] == "xyz"
    at.text_input(key="what_if_target").set_value("x🙂").run()
    assert "Character 2 is" in said(at)
    assert at.text_input(key="what_if_target").value == "x🙂"


@pytest.mark.parametrize("query", [{"what_if_prefix": "🙂"}, {"what_if_how": "banned tokens", "what_if_ban": "<end>"}])
def test_tokens_that_are_not_there_are_said(start: Start, query: dict[str, str]) -> None:
    at = start(text="abc", explore_tab="What if", **query)
    assert not at.exception
    assert "Not possible here" in said(at)
