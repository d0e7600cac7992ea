"""Tokens or words, beside every map: what is drawn is the pooled run, and what goes on from tokens keeps them."""

import numpy as np
import pytest

import transformer_viz as tv
from tests.needs import needs, slow
from tests.tiny_models import BERT, GPT2, MARIAN
from tests.views.drawn import CODE, codes, shown, titles
from tests.views.test_search_view import tab
from tests.views.viewer import assert_draws_again, head
from tests.views.widgets import link_of
from transformer_viz.analysis.word_pooling import step_of_tokens, step_of_words

pytestmark = needs("transformers")
TEXTS = {MARIAN: "The house is smallish.", GPT2: "Unrelated houses are", BERT: "Unrelated houses are [MASK]."}


@pytest.mark.parametrize("name", [slow(MARIAN), GPT2, slow(BERT)])
def test_what_is_drawn_is_the_pooled_run_and_the_lines_draw_it_again(models, start, name, run_code):
    at = start(checkpoint=name, text=TEXTS[name], unit="words", **CODE)
    assert not at.error
    trace = tv.decode(tv.load_model(name, "cpu"), TEXTS[name])
    pooled = tv.by_words(trace)
    assert at.session_state["last_step"] == len(pooled.rows) - 1
    n_words, n_tokens = (len(run.source_tokens) + len(run.target_tokens) for run in (pooled, trace))
    assert n_words < n_tokens
    assert "tv.by_words(trace)" in codes(at)
    kind = at.session_state["kind"]
    np.testing.assert_allclose(head(at), pooled.attentions[kind].weights[at.session_state["layer"], at.session_state["head"]])
    assert_draws_again(at, shown(run_code(codes(at))))
    for title in titles(at):
        at = tab(at, title)
        assert not at.error, title
        if title == "Heads":
            assert len(at.dataframe[0].value) == 2 * 2 * len(pooled.kinds)


def test_a_step_stays_at_its_word_and_the_link_says_words(models, start):
    trace = tv.decode(tv.load_model(GPT2, "cpu"), TEXTS[GPT2])
    at = start(checkpoint=GPT2, text=TEXTS[GPT2], step=str(trace.n_given + 2), all_controls="true")
    assert "unit" not in link_of(at)
    at.segmented_control(key="unit").set_value("words").run()
    word = step_of_words(trace, trace.n_given + 1)
    assert (link_of(at)["unit"], at.session_state["step"]) == ("words", str(word + 1))
    at.segmented_control(key="unit").set_value("tokens").run()
    assert (at.session_state["step"], "unit" in link_of(at)) == (str(step_of_tokens(trace, word) + 1), False)


def test_a_what_if_goes_on_from_tokens(models, start):
    """Its steps are those of the run by tokens, from the player's word on."""
    trace = tv.decode(tv.load_model(GPT2, "cpu"), TEXTS[GPT2])
    at = tab(start(checkpoint=GPT2, text=TEXTS[GPT2], unit="words"), "What if")
    box = at.number_input(key="what_if_step")
    assert (box.min, box.max) == (trace.n_given + 1, len(trace.steps))
    assert not at.error
