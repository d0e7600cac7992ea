"""Any hypothesis of a search that begins with a prompt is the run that wrote it, made without a search."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.attentions import with_parts
from tests.trace import planted
from tests.trace.conftest import is_same
from transformer_viz.errors import TraceError
from transformer_viz.terms import Reason
from transformer_viz.trace.hidden_answer import HIDDEN, hide_answer

PROMPTS = st.lists(st.integers(0, 6), min_size=1, max_size=5).map(tuple)


@settings(max_examples=20)
@given(PROMPTS, st.integers(1, 4), st.booleans(), st.booleans())
def test_every_node_is_the_run_that_wrote_it(prompt, steps, has_source, is_windowed):
    """Tokens, ids, steps, both attentions, masks and alignment, all to the bit."""
    found = planted.search(prompt, has_source=has_source, is_windowed=is_windowed, steps=steps)
    assert found.search is not None
    for number, node in enumerate(found.search.nodes):
        written = planted.path(found.search, number)
        alone = planted.run(written, prompt, has_source=has_source, is_windowed=is_windowed)
        finished = "end" if node.state == "end" else "length"
        assert is_same(found.at_node(number), dataclasses.replace(alone, finished=finished))
    assert is_same(found.hypothesis(0), dataclasses.replace(found, search=None))


def test_rows_of_the_prompt_are_in_no_hypothesis_but_through_the_run():
    """A search holds the rows that differ; what stands before them is the Trace's own."""
    found = planted.search()
    marked = found.decoder.weights.copy()
    marked[0, 0, 1, 0] = 0.125
    found = dataclasses.replace(found, attentions=with_parts(found, "decoder", weights=marked))
    assert found.search is not None
    for number in range(len(found.search.nodes)):
        decoder = found.at_node(number).decoder.weights
        assert decoder[0, 0, 1, 0] == 0.125


def test_a_shorter_path_has_the_beginning_of_the_mask():
    """A window alone looks the same from everywhere."""
    found = planted.search(is_windowed=True).search
    assert found is not None
    assert found.decoder_reasons is not None
    reasons = found.decoder_reasons.copy()
    reasons[..., 1, 0] = Reason.EDITED
    trace = dataclasses.replace(planted.search(is_windowed=True), search=dataclasses.replace(found, decoder_reasons=reasons))
    for number in range(len(found.nodes)):
        decoder = trace.at_node(number).decoder.reasons
        assert (np.argwhere(decoder == Reason.EDITED)[:, 2:] == (1, 0)).all()
        assert (decoder == Reason.EDITED).sum() == 4


def test_what_belongs_to_the_best_alone_is_left_out():
    found = planted.grouped(planted.search())
    assert found.groups
    assert found.hypothesis(1).groups == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"opening": ()}, "at least one token"),
        ({"opening_ids": (0, 1)}, "and an id each"),
        ({"candidate_ids": ((1,),)}, "an id for each candidate"),
        ({"opening": ("<s>", "a"), "opening_ids": (0, 1)}, "alignment has 3 entries for 5 steps after 1 given"),
        ({"decoder_reasons": np.zeros((6, 6))}, "decoder_reasons is float64"),
        ({"decoder_reasons": np.zeros((5, 5), np.uint8)}, r"uint8 \(6, 6\)"),
    ],
)
def test_parts_of_a_search_that_do_not_fit_are_named(change, words):
    found = planted.search().search
    assert found is not None
    with pytest.raises(TraceError, match=words):
        dataclasses.replace(found, **change)


def test_an_unknown_reason_in_the_mask_of_a_search_is_named():
    trace = planted.search()
    assert trace.search is not None
    with pytest.raises(TraceError, match="decoder_reasons holds code 17"):
        dataclasses.replace(trace, search=dataclasses.replace(trace.search, decoder_reasons=np.full((6, 6), 17, np.uint8)))


@pytest.mark.parametrize(
    "change",
    [
        lambda trace, search: {"n_given": 2},
        lambda trace, search: {"search": dataclasses.replace(search, opening=("<s>", "b", "�", "�"))},
        lambda trace, search: {"search": dataclasses.replace(search, opening_ids=(0, 1, 4, 4))},
        lambda trace, search: {"search": dataclasses.replace(search, opening_ids=None)},
        lambda trace, search: {"steps": ()},
        lambda trace, search: {"output_ids": None},
    ],
)
def test_a_search_begins_as_its_run_does(change):
    """Two labels that look alike are told apart by their ids."""
    trace = planted.search()
    with pytest.raises(TraceError, match="its opening has 4 tokens"):
        dataclasses.replace(trace, **change(trace, trace.search))


def test_what_is_covered_has_no_ids():
    """They would tell what the labels hide."""
    trace = planted.grouped(planted.run((3, 4, 2)))
    hidden = hide_answer(trace, 4)
    assert hidden.output_tokens == (*trace.output_tokens[:4], HIDDEN, HIDDEN)
    assert (hidden.target_ids, hidden.output_ids, hidden.groups) == (None, None, {})
    assert {step.token_id for step in hidden.steps[4:]} == {None}
    assert hidden.text == " ".join((trace.output_tokens[3], HIDDEN, HIDDEN))
