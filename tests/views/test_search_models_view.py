"""Search with models that are not ours."""

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.needs import needs
from tests.tiny_models import BERT, GPT2, MARIAN, MBART
from tests.views.drawn import picture_of, pictures, table_of
from tests.views.test_search_view import said, tree
from tests.views.test_shown_code import CODE, lines_of_pictures, run_code, shown  # noqa: F401
from tests.views.widgets import link_of
from transformer_viz import decode, load_model
from transformer_viz.model_options import ModelOptions
from transformer_viz.text_display import display_text, display_token

pytestmark = needs("transformers")
Start = Callable[..., AppTest]
SEARCHED = {MARIAN: "The house is small.", GPT2: "The capital of France"}


@pytest.mark.parametrize("name", [MARIAN, GPT2])
def test_the_tree_is_the_search_of_decode_and_the_lines_draw_it_again(
    models: Path,
    start: Start,
    name: str,
    run_code,  # noqa: F811
) -> None:
    at = start(decoding="beam", checkpoint=name, text=SEARCHED[name], beam="3", node="4", **CODE)
    trace = decode(load_model(name, "cpu"), SEARCHED[name], strategy="beam", beam_size=3)
    search = trace.search
    assert search is not None
    points = [trace_ for trace_ in tree(at)["data"] if "customdata" in trace_]
    assert sorted(number for points_ in points for number in points_["customdata"]) == list(range(len(search.nodes)))
    table = table_of(at, "rank")
    # The fourth node is none of the finished ones.
    assert list(table["text"]) == [display_text(search.nodes[n].text) or "(empty)" for n in (*search.best, 3)]
    assert "answer" not in table
    # The tree begins where the prompt ends, and its steps go on from there.
    start_point = next(trace_ for trace_ in tree(at)["data"] if trace_.get("x") == [0])
    assert start_point["text"] == [escape(display_token(search.opening[-1]))]
    assert tree(at)["layout"]["xaxis"]["ticktext"][0] == str(search.n_given + 1)
    assert shown(run_code(lines_of_pictures(at))) == [picture_of(chart) for chart in pictures(at)]


def test_the_words_beside_the_tree_count_what_was_written_alone(models: Path, start: Start) -> None:
    model, text = load_model(GPT2, "cpu"), SEARCHED[GPT2]
    greedy, best = decode(model, text), decode(model, text, strategy="beam", beam_size=5)
    by_greedy, by_beam = (sum(step.log_probability for step in run.steps[run.n_given :]) for run in (greedy, best))
    words = said(start(decoding="beam", checkpoint=GPT2, text=text))
    assert f"log p = {by_greedy:.4g}. Beam 5 finds" in words
    assert f"log p = {by_beam:.4g}: " in words


def test_as_transformers_does_it_is_a_switch_in_the_link_and_in_the_lines(models: Path, start: Start) -> None:
    at = start(decoding="beam", checkpoint=GPT2, text=SEARCHED[GPT2], beam="2", alpha="1", search_length="5", **CODE)
    at.toggle(key="refill").set_value(True).run()
    assert at.query_params["refill"] == "true"
    options: Any = {"strategy": "beam", "beam_size": 2, "length_penalty": 1.0, "stop": "bound", "refill": True, "max_length": 5}
    trace = decode(load_model(GPT2, "cpu"), SEARCHED[GPT2], **options)
    assert trace.search is not None
    np.testing.assert_allclose(table_of(at, "rank")["log p"], [trace.search.nodes[n].total for n in trace.search.best])
    assert "refill=True" in lines_of_pictures(at)
    assert set(table_of(at, "rank")["tokens"]) == {5}


def test_an_encoder_alone_is_read_whatever_decoding_the_link_says(models: Path, start: Start) -> None:
    at = start(decoding="beam", checkpoint=BERT)
    assert not at.exception and not at.error
    assert pictures(at) and not at.number_input
    assert link_of(at)["checkpoint"].startswith(BERT)


@pytest.mark.parametrize(
    ("name", "query", "switches"),
    [
        (GPT2, {"chat": "true", "generation": "false", "search_length": "5"}, ModelOptions(chat=True, generation=False)),
        (
            MBART,
            {"source_language": "fr_XX", "target_language": "de_DE", "refill": "true"},
            ModelOptions(source_language="fr_XX", target_language="de_DE"),
        ),
    ],
)
def test_a_switched_model_is_searched_so_in_the_lines_too(
    models: Path,
    start: Start,
    name: str,
    query: dict[str, str],
    switches: ModelOptions,
    run_code,  # noqa: F811
) -> None:
    at = start(decoding="beam", checkpoint=name, text="The house", beam="2", **query, **CODE)
    assert not at.exception and not at.warning
    assert query.keys() <= at.query_params.keys()
    how: Any = {"refill": True} if "refill" in query else {"max_length": 5}
    trace = decode(load_model(name, "cpu").with_options(switches), "The house", strategy="beam", beam_size=2, **how)
    assert trace.search is not None
    np.testing.assert_allclose(table_of(at, "rank")["log p"], [trace.search.nodes[n].total for n in trace.search.best])
    lines = lines_of_pictures(at)
    again = run_code(lines)
    assert shown(again) == [picture_of(chart) for chart in pictures(at)]
    # Names as they are listed, and no place on a machine.
    assert str(models) not in lines
    assert again["trace"].made_by["generation"] == trace.made_by["generation"]
