"""Any hypothesis of a search that begins with a prompt is the run that wrote it, made without a search."""

import dataclasses

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.attentions import with_parts
from tests.trace import planted
from tests.trace.conftest import is_same
from transformer_viz.terms import Reason

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
