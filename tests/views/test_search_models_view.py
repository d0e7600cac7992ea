"""Search with models that are not ours."""

from html import escape
from typing import Any

import numpy as np
import pytest

from tests.needs import needs, slow
from tests.tiny_models import BERT, GPT2, MARIAN, MBART
from tests.views.drawn import CODE, codes, said, shown, table_of
from tests.views.test_search_view import tree
from tests.views.viewer import assert_draws_again, has_viewer
from tests.views.widgets import link_of
from transformer_viz import decode, load_model
from transformer_viz.model_options import ModelOptions
from transformer_viz.numbers_in_words import rounded_words
from transformer_viz.text_display import display_text, display_token

pytestmark = needs("transformers")
LANGUAGES: Any = {"source_language": "fr_XX", "target_language": "de_DE"}
SEARCHED = {MARIAN: "The house is small.", GPT2: "The capital of France"}


@pytest.mark.parametrize("name", [MARIAN, GPT2])
def test_the_tree_is_the_search_of_decode_and_the_lines_draw_it_again(models, start, name, run_code):
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
    assert_draws_again(at, shown(run_code(codes(at))))


def test_the_words_beside_the_tree_count_what_was_written_alone(models, start):
    model, text = load_model(GPT2, "cpu"), SEARCHED[GPT2]
    greedy, best = decode(model, text), decode(model, text, strategy="beam", beam_size=5)
    by_greedy, by_beam = (sum(step.log_probability for step in run.steps[run.n_given :]) for run in (greedy, best))
    words = said(start(decoding="beam", checkpoint=GPT2, text=text))
    assert f"log p = {rounded_words(by_greedy, 4)}. Beam 5 finds" in words
    assert f"log p = {rounded_words(by_beam, 4)}: " in words


def test_an_encoder_alone_is_read_whatever_decoding_the_link_says(models, start):
    at = start(decoding="beam", checkpoint=BERT)
    assert not at.error and has_viewer(at) and not at.number_input


@pytest.mark.parametrize(
    ("name", "query", "switches"),
    [
        (GPT2, {"chat": "true", "generation": "false", "search_length": "5"}, ModelOptions(chat=True, generation=False)),
        slow(MBART, {**LANGUAGES, "search_length": "5"}, ModelOptions(**LANGUAGES)),
    ],
)
def test_a_switched_model_is_searched_so_in_the_lines_too(models, start, name, query, switches, run_code):
    at = start(decoding="beam", checkpoint=name, text="The house", beam="2", **query, **CODE)
    assert not at.warning
    assert query.keys() <= link_of(at).keys()
    model = load_model(name, "cpu").with_options(switches)
    trace = decode(model, "The house", strategy="beam", beam_size=2, max_length=5)
    assert trace.search is not None
    np.testing.assert_allclose(table_of(at, "rank")["log p"], [trace.search.nodes[n].total for n in trace.search.best])
    again = run_code(codes(at))
    assert_draws_again(at, shown(again))
    assert str(models) not in codes(at), "names as they are listed, and no place on a machine"
    assert again["trace"].made_by["generation"] == trace.made_by["generation"]
