"""Search and What if through AppTest."""

import json
from typing import Any

from streamlit.testing.v1 import AppTest

from tests.views.drawn import pictures, said, table_of
from tests.views.widgets import link_of
from transformer_viz import decode
from transformer_viz.text_display import display_token
from transformer_viz.views.components.markdown import literal


def tree(at: AppTest) -> dict[str, Any]:
    specs = pictures(at)
    return next(spec for spec in specs if any(trace.get("name") == "pruned" for trace in spec["data"]))


def tab(at: AppTest, name: str) -> AppTest:
    at.session_state["explore_tab"] = name
    return at.run()


def test_the_tree_the_table_and_the_best_hypothesis(start, model):
    at = start(decoding="beam", text="abc", beam="3")
    trace = decode(model, "abc", strategy="beam", beam_size=3)
    assert trace.search is not None
    points = [trace_ for trace_ in tree(at)["data"] if "customdata" in trace_]
    numbers = sorted(number for points_ in points for number in points_["customdata"])
    assert numbers == list(range(len(trace.search.nodes)))
    table = table_of(at, "rank")
    assert list(table["text"]) == [trace.search.nodes[n].text or "(empty)" for n in trace.search.best]
    assert list(table["log p"]) == [trace.search.nodes[n].total for n in trace.search.best]
    assert list(at.session_state["hypotheses"]["selection"]["rows"]) == [0]
    assert f"The hypothesis {trace.text}" in said(at).replace("*", "")


def test_a_node_that_is_not_finished_has_a_row_too(start, model):
    trace = decode(model, "abc", strategy="beam", beam_size=4)
    search = trace.search
    assert search is not None
    other = next(number for number in range(1, len(search.nodes)) if number not in search.best)
    at = start(decoding="beam", text="abc", beam="4", node=str(other + 1))
    table = table_of(at, "rank")
    assert list(table["log p"]) == [search.nodes[number].total for number in (*search.best, other)]
    assert list(at.session_state["hypotheses"]["selection"]["rows"]) == [len(search.best)]
    last = table.iloc[-1]
    assert (last["rank"], str(last["score"])) == ("–", "nan")
    assert f"The hypothesis {last['text']}" in said(at).replace("*", "")


def test_another_token_and_undo(start, model):
    at = tab(start(text="abc"), "What if")
    at.number_input(key="what_if_step").set_value(2).run()
    at.selectbox(key="what_if_token").set_value("Q").run()
    first = decode(model, "abc").output_tokens[0]
    other = decode(model, "abc", prefix=[first, "Q"])
    assert other.text.replace("\\", "") in said(at)
    assert "They diverge at step 2" in said(at)
    assert json.loads(link_of(at)["what_if_prefix"]) == [first, "Q"]
    box, was = at.selectbox(key="what_if_token"), decode(model, "abc").output_tokens[1]
    assert (box.value, box.label) == ("Q", f"instead of {literal(display_token(was))}")
    assert "the pictures above show it" in said(at)
    # The next change is one of the changed run.
    at.number_input(key="what_if_step").set_value(3).run()
    at.selectbox(key="what_if_token").set_value("Z").run()
    assert decode(model, "abc", prefix=[first, "Q", "Z"]).text.replace("\\", "") in said(at)
    at.selectbox(key="what_if_token").set_value("").run()
    assert json.loads(link_of(at)["what_if_prefix"]) == [first, "Q"]
    at.button(key="what-if-undo").click().run()
    assert "what_if_prefix" not in link_of(at)
    assert at.selectbox(key="what_if_token").value == ""
    assert "They diverge" not in said(at)
