"""The head that looks elsewhere, and the one that shows gradations, against plain loops."""

import math
from dataclasses import replace

import numpy as np
import pytest

import transformer_viz as tv
from transformer_viz.analysis.head_order import farthest_head, graded_head


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_it_is_the_one_whose_cells_are_farthest(tiny, kind):
    attention = tv.decode(tiny, "hello").attentions[kind]
    for layer in attention.layers:
        here = attention.head(layer, 1)
        far = {
            (other, head): np.abs(attention.head(other, head) - here).mean()
            for other in attention.layers
            for head in range(attention.n_heads)
        }
        assert farthest_head(attention, layer, 1) == max(far, key=far.__getitem__) != (layer, 1)


@pytest.mark.parametrize("text", ["reversethis", "hello", "aaaaaaaa"])
def test_of_those_right_at_most_steps_it_is_the_one_that_spreads_most(text):
    run = tv.decode(tv.load_checkpoint("reverse"), text)
    n_letters = len(text)
    found = {}
    for layer in run.cross.layers:
        for head in range(run.cross.n_heads):
            rows = run.cross.head(layer, head)
            right = sum(int(np.argmax(rows[t])) == n_letters - t for t in range(n_letters))
            spread = [-sum(w * math.log(w) for w in map(float, row) if w) / math.log(len(row)) for row in rows]
            found[layer, head] = (right, sum(spread))
    assert graded_head(run) == max(found, key=found.__getitem__)


def test_there_is_none_where_no_step_has_a_true_key(tiny):
    run = tv.decode(tiny, "hello")
    assert graded_head(replace(run, alignment=(None,) * len(run.rows))) is None
