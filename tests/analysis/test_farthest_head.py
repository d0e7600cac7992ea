"""The head that looks elsewhere, against a plain loop."""

import numpy as np
import pytest

import transformer_viz as tv
from transformer_viz.analysis.head_order import farthest_head


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
